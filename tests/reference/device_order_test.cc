// Goal: whoever uses a tensor of a device that another execution has made comes after what made it,
// without that the host waits. Method: the reference's tests of streams, on simulated devices,
// which tell each wait that is missing, whatever the order was.
#include <c10/core/StreamGuard.h>
#include <torch/types.h>

#include <memory>
#include <mutex>
#include <vector>

#include "tests/reference/devices.h"

namespace rehearsal::reference::device_order_test {
namespace {

// A value that its methods change.
class Cell {
 public:
  Cell(CallContext& call, double value) : tensor_(worked(on(call, 0, value))) {}
  void add(double number) { tensor_ = worked(tensor_ + number); }
  at::Tensor get() const { return tensor_; }
  // Another execution of the value may come meanwhile.
  at::Tensor add_and_wait(CallContext& call, double number) {
    tensor_.add_(number);
    call.sleep(std::chrono::milliseconds(5));
    tensor_.mul_(1);
    return tensor_;
  }

 private:
  at::Tensor tensor_;
};

// By way of another stream than its own, which it joins.
at::Tensor twice_on_the_side(const at::Tensor& tensor) {
  const c10::impl::VirtualGuardImpl kind(tensor.device().type());
  const c10::Stream own = kind.getStream(tensor.device());
  const c10::Stream side = kind.getStreamFromGlobalPool(tensor.device());
  c10::Event arrived(kind.type());
  arrived.record(own);
  arrived.block(side);
  at::Tensor doubled;
  {
    const c10::StreamGuard guard(side);
    doubled = worked(tensor) * 2;
  }
  c10::Event done(kind.type());
  done.record(side);
  done.block(own);
  tensor.record_stream(side);
  doubled.record_stream(own);
  return doubled;
}

at::Tensor twice_by(CallContext& call, const std::string& worker, const at::Tensor& tensor) {
  return call.rpc_sync(worker, &twice_on_the_side, worked(tensor));
}

at::Tensor value_of(const RRef<at::Tensor>& reference) { return worked(reference.to_here()); }
at::Tensor cell_of(const RRef<Cell>& cell) { return worked(cell.rpc_sync(&Cell::get)); }

at::Tensor made_at(CallContext& call, double value) { return worked(on(call, 0, value)); }

Future<at::Tensor> twice_later(CallContext& call, const std::string& worker,
                               const at::Tensor& tensor) {
  return call.rpc_async(worker, &twice, worked(tensor)).then([](const at::Tensor& doubled) {
    return worked(doubled) + 1;
  });
}

// Numbers, in the order in which they came.
class Diary {
 public:
  Diary() = default;
  void write(int64_t number, const at::Tensor&) { numbers_.push_back(number); }
  std::vector<int64_t> numbers() const { return numbers_; }

 private:
  std::vector<int64_t> numbers_;
};

// A tensor beside things that cannot be sent.
class Locked {
 public:
  explicit Locked(CallContext& call) : tensor_(on(call, 0, 0)), event_(tensor_.device().type()) {}
  void increase(double by) {
    const std::lock_guard<std::mutex> inside(mutex_);
    tensor_ = worked(tensor_ + by);
    event_.record(c10::impl::VirtualGuardImpl(event_.device_type()).getStream(tensor_.device()));
  }
  at::Tensor sum() {
    const std::lock_guard<std::mutex> inside(mutex_);
    return tensor_.sum();
  }

 private:
  std::mutex mutex_;
  at::Tensor tensor_;
  c10::Event event_;
};

// A value that all calls of a worker share.
struct Shared {
  at::Tensor sum;
};
at::Tensor add_to_shared(CallContext& call, const at::Tensor& tensor) {
  return call.with_state<Shared>([&](Shared& shared) {
    shared.sum = shared.sum.defined() ? worked(shared.sum) + tensor : worked(tensor);
    return shared.sum.clone();
  });
}

// Gives the sum away, in memory of the state's own streams.
at::Tensor shared(CallContext& call) {
  return call.with_state<Shared>([&](Shared& shared) { return worked(shared.sum); });
}

// Calls that wait for what another one brings.
struct Mailbox {
  std::vector<Promise<at::Tensor>> waiting;
};
Future<at::Tensor> take(CallContext& call) {
  return call.with_state<Mailbox>([&](Mailbox& mailbox) {
    return mailbox.waiting.emplace_back(call.promise<at::Tensor>()).future();
  });
}
int64_t waiting(CallContext& call) {
  return call.with_state<Mailbox>(
      [](Mailbox& mailbox) { return static_cast<int64_t>(mailbox.waiting.size()); });
}
void bring(CallContext& call, const at::Tensor& tensor) {
  const at::Tensor made = worked(tensor);
  call.with_state<Mailbox>([&](Mailbox& mailbox) {
    for (const auto& promise : mailbox.waiting) promise.complete(made);
    mailbox.waiting.clear();
  });
}

void count_up(StreamWriter<at::Tensor>& out, const at::Tensor& from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out.write(worked(from + i));
}

// A view of what was computed.
at::Tensor half_of(const at::Tensor& tensor) {
  return worked(at::cat({tensor, tensor})).slice(0, 0, kSide);
}

at::Tensor mixed(const at::Tensor& of_device, const at::Tensor& of_cpu) {
  return of_device + of_cpu;
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.type<Cell>("Cell")
      .constructor<CallContext&, double>()
      .method("add", &Cell::add)
      .method("get", &Cell::get)
      .method("add_and_wait", &Cell::add_and_wait);
  registry.type<Diary>("Diary")
      .constructor<>()
      .method("write", &Diary::write)
      .method("numbers", &Diary::numbers);
  registry.type<Locked>("Locked")
      .constructor<CallContext&>()
      .method("increase", &Locked::increase)
      .method("sum", &Locked::sum);
  registry.function("add_to_shared", &add_to_shared)
      .function("shared", &shared)
      .function("count_up", &count_up);
  registry.function("take", &take).function("bring", &bring).function("waiting", &waiting);
  registry.function("twice", &twice)
      .function("twice_on_the_side", &twice_on_the_side)
      .function("twice_by", &twice_by)
      .function("value_of", &value_of)
      .function("cell_of", &cell_of)
      .function("made_at", &made_at)
      .function("twice_later", &twice_later)
      .function("half_of", &half_of)
      .function("mixed", &mixed);
  return registry;
}

// Each worker has the states, too.
Program with_states(const Program::Main& main) {
  Program program(functions());
  const Program workers = three_workers({}, main);
  for (const Program::Member& member : workers.members()) {
    program.worker(member.name, member.main).state<Shared>().state<Mailbox>();
    for (const auto& [peer, map] : member.device_maps) program.device_map(peer, map);
  }
  return program;
}

void holds(const Program::Main& main, uint64_t seeds = 20) {
  in_both_worlds(with_states(main), {.seeds = tries(seeds), .devices = 1});
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_custom_stream, test_custom_stream_multi,
// Rows: test_custom_stream_nested, test_custom_stream_nested_multi}
TEST(DeviceOrder, OfCallsOnStreamsOfTheProgramsOwn) {
  holds([](Worker& worker) {
    const c10::StreamGuard own(new_stream(worker.device(0)));
    const at::Tensor three = worked(on(worker, 0, 3));
    expect_all(worker.rpc_sync("worker1", &twice_on_the_side, three), 6);
    expect_all(worker.rpc_sync("worker1", &twice_by, std::string("worker2"), three), 6);
    std::vector<Future<at::Tensor>> all;
    for (int i = 0; i < 4; ++i)
      all.push_back(worker.rpc_async("worker1", &twice_on_the_side, on(worker, 0, i)));
    for (int i = 0; i < 4; ++i) expect_all(all[i].wait(), 2 * i);
  });
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_rref_to_here_synchronization1,
// Rows: test_rref_to_here_synchronization2, test_rref_to_here_synchronization3,
// Rows: test_rref_to_here_synchronization4}
TEST(DeviceOrder, OfAValueAndWhoFetchesIt) {
  holds([](Worker& worker) {
    for (const char* to : {"worker1", "worker0"}) {
      const RRef<at::Tensor> made = worker.remote(to, &made_at, 3.);
      expect_all(made.to_here(), 3);
      const RRef<Cell> cell = worker.remote<Cell>(to, 1.);
      cell.rpc_sync(&Cell::add, 2.);
      expect_all(cell.rpc_sync(&Cell::get), 3);
      std::vector<Future<Unit>> added;
      for (int i = 0; i < 3; ++i) added.push_back(cell.rpc_async(&Cell::add, 1.));
      for (const auto& one : added) one.wait();
      expect_all(cell.rpc_async(&Cell::get).wait(), 6);
    }
  });
}

TEST(DeviceOrder, OfMethodsThatGiveTheirValueUpWhileTheyWait) {
  holds([](Worker& worker) {
    const RRef<Cell> cell = worker.remote<Cell>("worker1", 1.);
    std::vector<Future<at::Tensor>> added;
    for (int i = 0; i < 4; ++i) added.push_back(cell.rpc_async(&Cell::add_and_wait, 1.));
    for (const auto& one : added) one.wait();
    expect_all(cell.rpc_sync(&Cell::get), 5);
  });
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_rref_as_arg_synchronization1,
// Rows: test_rref_as_arg_synchronization2, test_rref_as_arg_synchronization3,
// Rows: test_rref_as_arg_synchronization4, test_rref_as_arg_synchronization5}
TEST(DeviceOrder, OfAReferenceThatIsAnArgument) {
  holds([](Worker& worker) {
    const RRef<at::Tensor> here = worker.rref(worked(on(worker, 0, 3)));
    expect_all(worker.rpc_sync("worker1", &value_of, here), 3);
    const RRef<at::Tensor> there = worker.remote("worker2", &made_at, 4.);
    expect_all(worker.rpc_sync("worker1", &value_of, there), 4);
    expect_all(worker.remote("worker1", &value_of, there).to_here(), 4);
    const RRef<Cell> cell = worker.remote<Cell>("worker2", 5.);
    cell.rpc_async(&Cell::add, 1.).wait();
    expect_all(worker.rpc_sync("worker1", &cell_of, cell), 6);
  });
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_rref_forward_synchronization1,
// Rows: test_rref_forward_synchronization2, test_rref_forward_synchronization3,
// Rows: test_rref_forward_synchronization4, test_owner_rref_forward_synchronization1,
// Rows: test_owner_rref_forward_synchronization2, test_owner_rref_forward_synchronization3,
// Rows: test_owner_rref_forward_synchronization4}
TEST(DeviceOrder, OfAValueThatIsHereAndTheCodeBesideIt) {
  holds([](Worker& worker) {
    for (const char* to : {"worker0", "worker1"}) {
      const RRef<at::Tensor> made = worker.remote(to, &made_at, 3.);
      const RRef<at::Tensor> again = worker.remote("worker2", &value_of, made);
      expect_all(again.to_here() + made.to_here(), 6);
    }
    const RRef<Cell> own = worker.remote<Cell>("worker0", 1.);
    own.rpc_sync(&Cell::add, 1.);
    expect_all(worked(own.local_value().get()), 2);
    const RRef<Cell> cell = worker.remote<Cell>("worker0", 1.);
    cell.with_local([](Cell& value) { value.add(1); });
    expect_all(cell.rpc_sync(&Cell::get), 2);
    cell.with_local([](Cell& value) { value.add(1); });
    expect_all(cell.local_value().get(), 3);
  });
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_tensor_view_as_return_value}
TEST(DeviceOrder, OfAViewThatIsReturned) {
  holds([](Worker& worker) {
    std::vector<Future<at::Tensor>> halves;
    for (int i = 0; i < 5; ++i)
      halves.push_back(worker.rpc_async("worker1", &half_of, on(worker, 0, i)));
    for (int i = 0; i < 5; ++i) expect_all(halves[i].wait(), i);
  });
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_async_execution_with_cuda_future,
// Rows: test_async_execution_nested_with_cuda_future}
TEST(DeviceOrder, OfFuturesAndWhatContinuesThem) {
  holds([](Worker& worker) {
    const at::Tensor three = worked(on(worker, 0, 3));
    expect_all(worker.rpc_sync("worker1", &twice_later, std::string("worker2"), three), 7);
    const Future<at::Tensor> chain =
        worker.rpc_async("worker1", &twice_later, std::string("worker2"), three)
            .then([](const at::Tensor& seven) { return worked(seven) + 1; });
    expect_all(chain.wait(), 8);
  });
}

TEST(DeviceOrder, OfAFutureThatIsReadOnAnotherStream) {
  holds([](Worker& worker) {
    const c10::Stream other = new_stream(worker.device(0));
    const Future<at::Tensor> six = worker.rpc_async("worker1", &twice, worked(on(worker, 0, 3)));
    const Future<at::Tensor> eight = worker.rpc_async("worker2", &twice, worked(on(worker, 0, 4)));
    at::Tensor read;
    Future<at::Tensor> continued;
    {
      const c10::StreamGuard guard(other);
      continued = eight.then([](const at::Tensor& tensor) { return worked(tensor) + 1; });
      six.wait().record_stream(other);
      read = worked(six.wait());
      expect_all(read, 6);
    }
    expect_all(worked(continued.wait()), 9);
  });
}

TEST(DeviceOrder, OfAnAnswerThatAnotherCallBrings) {
  holds([](Worker& worker) {
    const Future<at::Tensor> taken = worker.rpc_async("worker1", &take);
    const Future<at::Tensor> twice_taken = worker.rpc_async("worker1", &take);
    while (worker.rpc_sync("worker1", &waiting) < 2) worker.sleep(std::chrono::milliseconds(20));
    worker.rpc_sync("worker1", &bring, worked(on(worker, 0, 3)));
    expect_all(taken.wait() + twice_taken.wait(), 6);
  });
}

TEST(DeviceOrder, OfAnArgumentThatDiesWhileItIsCopied) {
  holds([](Worker& worker) {
    const c10::Stream other = new_stream(worker.device(0));
    for (int i = 0; i < 4; ++i) {
      at::Tensor argument = worked(on(worker, 0, i));
      Future<at::Tensor> doubled;
      {
        c10::Event made(other.device_type());
        made.record(c10::impl::VirtualGuardImpl(other.device_type()).getStream(other.device()));
        made.block(other);
        const c10::StreamGuard guard(other);
        doubled = worker.rpc_async("worker1", &twice, argument);
      }
      argument.reset();
      (void)worked(on(worker, 0, 9));
      expect_all(doubled.wait(), 2 * i);
    }
  });
}

TEST(DeviceOrder, OfAnArgumentThatIsChangedAfterTheCall) {
  holds([](Worker& worker) {
    for (const char* to : {"worker1", "worker0"}) {
      at::Tensor argument = worked(on(worker, 0, 1));
      std::vector<Future<at::Tensor>> doubled;
      for (int i = 0; i < 5; ++i) {
        doubled.push_back(worker.rpc_async(to, &twice, argument));
        argument.add_(1);
      }
      for (int i = 0; i < 5; ++i) expect_all(doubled[i].wait(), 2 * (1 + i));
    }
  });
}

TEST(DeviceOrder, OfAStateThatCallsShare) {
  holds([](Worker& worker) {
    for (const char* to : {"worker1", "worker0"}) {
      std::vector<Future<at::Tensor>> sums;
      for (int i = 0; i < 5; ++i)
        sums.push_back(worker.rpc_async(to, &add_to_shared, worked(on(worker, 0, 1))));
      double sum = 0;
      for (const auto& one : sums) sum += one.wait().cpu()[0].item<double>();
      EXPECT_EQ(sum, 15);
    }
  });
}

// The memory of what a state gives away is of the state's streams, which are those of the main: it
// is given out again to nobody who comes before the answer is copied.
TEST(DeviceOrder, OfAnAnswerThatIsMadeInAState) {
  holds([](Worker& worker) {
    worker.rpc_sync("worker0", &add_to_shared, worked(on(worker, 0, 1)));
    std::vector<Future<at::Tensor>> sums;
    for (int i = 0; i < 5; ++i) {
      sums.push_back(worker.rpc_async("worker0", &shared));
      worker.sleep(std::chrono::microseconds(i));  // Before anybody sees that it is copied.
      (void)worked(on(worker, 0, 7));
    }
    for (const auto& one : sums) expect_all(one.wait(), 1);
  });
}

// Of one value the calls in order run as they were made, though some wait for a device's copies.
TEST(DeviceOrder, OfCallsThatAreInOrder) {
  holds([](Worker& worker) {
    for (const char* to : {"worker1", "worker0"}) {
      const RRef<Diary> diary = worker.remote<Diary>(to);
      const InOrder<Diary> in_order = diary.in_order();
      std::vector<Future<Unit>> written;
      for (int64_t i = 0; i < 6; ++i)
        written.push_back(in_order.rpc_async(
            &Diary::write, i, i % 2 == 0 ? worked(on(worker, 0, 1)) : at::ones({1})));
      for (const auto& one : written) one.wait();
      EXPECT_EQ(diary.rpc_sync(&Diary::numbers), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
    }
  });
}

TEST(DeviceOrder, OfTheValuesOfAStream) {
  holds([](Worker& worker) {
    int64_t number = 3;
    for (const at::Tensor& value :
         worker.rpc_stream("worker1", &count_up, worked(on(worker, 0, 3)), int64_t{20}))
      expect_all(worked(value), static_cast<double>(number++));
    EXPECT_EQ(number, 23);
  });
}

TEST(DeviceOrder, OfFuturesThatAreGathered) {
  holds([](Worker& worker) {
    std::vector<Future<at::Tensor>> parts;
    for (int i = 0; i < 4; ++i)
      parts.push_back(
          worker.rpc_async(i % 2 == 0 ? "worker1" : "worker2", &twice, worked(on(worker, 0, i))));
    const Future<at::Tensor> sum = when_all(parts).then(
        [](const std::vector<at::Tensor>& doubled) { return worked(at::stack(doubled)).sum(0); });
    expect_all(sum.wait(), 12);
  });
}

// Memory that is freed and given out again meanwhile.
TEST(DeviceOrder, OfValuesThatDieWhileTheyAreUsed) {
  holds([](Worker& worker) {
    for (int i = 0; i < 5; ++i) {
      const RRef<Cell> cell = worker.remote<Cell>("worker1", static_cast<double>(i));
      const Future<Unit> added = cell.rpc_async(&Cell::add, 1.);
      const Future<at::Tensor> got = cell.rpc_async(&Cell::get);
      (void)worker.rpc_async("worker1", &twice, worked(on(worker, 0, 7)));
      added.wait();
      expect_all(got.wait(), i + 1);
    }
  });
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_rref_with_unpickleable_attributes}
TEST(DeviceOrder, OfAValueThatCannotBeSent) {
  holds(
      [](Worker& worker) {
        const RRef<Locked> locked = worker.remote<Locked>("worker1");
        locked.rpc_sync(&Locked::increase, 42. / kSide);
        EXPECT_EQ(locked.rpc_sync(&Locked::sum).item<double>(), 42);
      },
      4);
}

// Rows: rpc_test::TensorPipeAgentCudaRpcTest.{test_device_mismatch}
TEST(DeviceOrder, OperandsOfTwoDevicesAreAnErrorOfTheCall) {
  holds(
      [](Worker& worker) {
        const at::Tensor one = on(worker, 0, 1);
        const Error error =
            error_of([&] { worker.rpc_sync("worker1", &mixed, one, at::ones({kSide})); });
        EXPECT_EQ(error.kind, ErrorKind::remote_exception);
        EXPECT_EQ(error.worker, "worker1");
        expect_all(worker.rpc_sync("worker1", &twice, one), 2);
      },
      4);
}

}  // namespace
}  // namespace rehearsal::reference::device_order_test
