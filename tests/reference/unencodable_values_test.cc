// Goal: a value that cannot be encoded, or whose own code throws, fails its call alone, by whatever
// form it is sent, and everybody serves on. Method: rows of PyTorch's table have none of this;
// each form once, in both worlds.
#include <ATen/ATen.h>

#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/reference/row.h"

namespace rehearsal::reference::unencodable_values_test {
namespace {

// More than a message holds, from four bytes.
at::Tensor far_too_large() { return at::ones(1).expand(int64_t{1} << 38); }

at::Tensor too_large_for_memory() { return at::ones(1).expand(int64_t{1} << 37); }

// A sparse tensor that no receiver can put together.
at::Tensor misfit() {
  return at::_sparse_compressed_tensor_unsafe(at::zeros({2}, at::kLong), at::zeros({1}, at::kLong),
                                              at::ones({1}), {4, 4},
                                              at::TensorOptions(at::kFloat).layout(at::kSparseCsr));
}

at::Tensor zero_tensor() { return at::_efficientzerotensor({2, 3}); }

at::Tensor same(const at::Tensor& tensor) { return tensor; }

void stream_of(StreamWriter<at::Tensor>& out) {
  out.write(at::ones(2));
  out.write(misfit());
}

Future<at::Tensor> later(CallContext& context) {
  return context.rpc_async(context.worker_info(), &same, at::ones(2)).then([](at::Tensor) {
    return misfit();
  });
}

// Cannot be copied, nor moved, once it is told so.
struct Fragile {
  explicit Fragile(std::shared_ptr<const bool> breaks) : broken(std::move(breaks)) {}
  Fragile(const Fragile& other) : broken(other.broken) {
    if (*broken) throw std::length_error("copied too late");
  }
  std::shared_ptr<const bool> broken;
};

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("far_too_large", &far_too_large)
      .function("too_large_for_memory", &too_large_for_memory)
      .function("misfit", &misfit)
      .function("zero_tensor", &zero_tensor)
      .function("same", &same)
      .function("stream_of", &stream_of)
      .function("later", &later);
  return registry;
}

// The callee serves on.
void expect_served(Worker& worker, const std::string& to) {
  EXPECT_TRUE(at::equal(worker.rpc_sync(to, &same, at::ones(2)), at::ones(2)));
}

void expect_refused(const Error& error, const std::string& at, const std::string& function) {
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments) << to_string(error);
  EXPECT_EQ(error.worker, at);
  EXPECT_EQ(error.function, function);
}

TEST(ReferenceUnencodable, AResultThatCannotBeEncodedFailsItsCallInEveryForm) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    for (const std::string& to : {worker.name(), after(worker)}) {
      const Error sync = error_of([&] { (void)worker.rpc_sync(to, &misfit); });
      expect_refused(sync, to, "misfit");
      EXPECT_TRUE(contains(sync.text, "whose parts do not fit each other")) << sync.text;
      expect_refused(error_of([&] { (void)worker.rpc_async(to, &far_too_large).wait(); }), to,
                     "far_too_large");
      const RRef<at::Tensor> stays = worker.remote(to, &misfit);
      stays.created().wait();
      EXPECT_EQ(kind_of([&] { (void)stays.to_here(); }), ErrorKind::bad_arguments);
      expect_refused(error_of([&] { (void)worker.rpc_sync(to, &later); }), to, "later");
      EXPECT_EQ(kind_of([&] {
                  (void)worker.rpc_sync<at::Tensor>(to, "aten::expand", at::ones(1),
                                                    std::vector<int64_t>{int64_t{1} << 38});
                }),
                ErrorKind::bad_arguments);
      expect_served(worker, to);
    }
  }));
}

TEST(ReferenceUnencodable, AValueOfAStreamThatCannotBeEncodedEndsTheStream) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    auto stream = worker.rpc_stream(after(worker), &stream_of);
    EXPECT_TRUE(at::equal(stream.next().value(), at::ones(2)));
    EXPECT_EQ(kind_of([&] { (void)stream.next(); }), ErrorKind::bad_arguments);
    expect_served(worker, after(worker));
  }));
}

TEST(ReferenceUnencodable, AnArgumentThatCannotBeEncodedIsRefusedWhereItIsGiven) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    expect_refused(error_of([&] { (void)worker.rpc_sync(after(worker), &same, misfit()); }),
                   worker.name(), "same");
    expect_refused(error_of([&] { (void)worker.remote(after(worker), &same, far_too_large()); }),
                   worker.name(), "same");
    expect_served(worker, after(worker));
  }));
}

TEST(ReferenceUnencodable, AResultForWhichThereIsNoMemoryFailsItsCall) {
  // Half a tebibyte, of which four bytes exist.
  try {
    (void)too_large_for_memory().contiguous();
    GTEST_SKIP() << "this machine hands out memory that it has not";
  } catch (const c10::Error&) {
  }
  in_both_worlds(everywhere(functions(),
                            [](Worker& worker) {
                              const std::string to = after(worker);
                              const Error error = error_of(
                                  [&] { (void)worker.rpc_sync(to, &too_large_for_memory); });
                              expect_refused(error, to, "too_large_for_memory");
                              EXPECT_TRUE(contains(error.text, "it is expanded")) << error.text;
                              expect_served(worker, to);
                            }),
                 {.seeds = 20});
}

TEST(ReferenceUnencodable, AZeroTensorArrivesAsZeros) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    EXPECT_TRUE(at::equal(worker.rpc_sync(after(worker), &zero_tensor), at::zeros({2, 3})));
  }));
}

TEST(ReferenceUnencodable, AnOperatorIsNotGivenANumberThatIsNoDtype) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const Error error = error_of([&] {
      (void)worker.rpc_sync<at::Tensor>(after(worker), "aten::ones", std::vector<int64_t>{2},
                                        kwarg("dtype", 999));
    });
    expect_refused(error, after(worker), "aten::ones");
    expect_served(worker, after(worker));
  }));
}

TEST(ReferenceUnencodable, AValueWhoseCopyThrowsFailsItsFutureOnly) {
  // The values of several futures are copied on the worker's own strand, by their own code.
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const auto broken = std::make_shared<bool>(false);
    const Promise<Fragile> promise = worker.promise<Fragile>();
    const Future<Fragile> whole = promise.future();
    promise.complete(Fragile(broken));
    EXPECT_FALSE(*whole.wait().broken);
    *broken = true;
    const Error all = error_of([&] { (void)worker.when_all<Fragile>({whole}).wait(); });
    EXPECT_EQ(all.kind, ErrorKind::remote_exception);
    EXPECT_EQ(all.worker, worker.name());
    EXPECT_TRUE(contains(all.text, "copied too late")) << all.text;
    EXPECT_EQ(kind_of([&] { (void)worker.collect_all<Fragile>({whole}).wait(); }),
              ErrorKind::remote_exception);
    *broken = false;
    expect_served(worker, after(worker));
  }));
}

}  // namespace
}  // namespace rehearsal::reference::unencodable_values_test
