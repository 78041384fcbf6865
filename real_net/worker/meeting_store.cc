#include "real_net/worker/meeting_store.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "real_net/tcp/host_addresses.h"
#include "real_net/tcp/own_addresses.h"
#include "real_net/worker/bounded.h"
#include "real_net/worker/group_card.h"
#include "real_net/worker/store_file.h"
#include "real_net/worker/store_probe.h"

// The wheel is built with these, and c10d's headers ask for them.
#define USE_DISTRIBUTED
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace rehearsal::real {
namespace {

using Clock = std::chrono::steady_clock;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

constexpr auto kConnectsApart = std::chrono::milliseconds(100);
constexpr auto kConnectLimit = std::chrono::seconds(3);
constexpr auto kStoreAnswerLimit = std::chrono::seconds(15);
constexpr auto kLookLimit = std::chrono::seconds(1);
constexpr char kFileIsLocked[] =
    "a process that is stopped, or that hangs, keeps the file locked (lsof names it)";
constexpr char kRoot[] = "rehearsal-rendezvous";
constexpr char kAnnouncement[] = "announcement";

Error failure(ErrorKind kind, std::string text) { return {.kind = kind, .text = std::move(text)}; }

std::chrono::milliseconds left_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

c10d::TCPStoreOptions store_options(const Address& master, Clock::time_point deadline) {
  c10d::TCPStoreOptions options;
  options.port = master.port;
  options.waitWorkers = false;
  options.timeout = left_until(deadline);
  return options;
}

// The news of the thread that opens a store, for the one that waits for it.
class Opening {
 public:
  void found(const Error& error) {
    const std::lock_guard lock(mutex_);
    found_ = error;
  }
  [[nodiscard]] Error found() const {
    const std::lock_guard lock(mutex_);
    return found_;
  }
  std::atomic<bool> abandoned{false};

 private:
  mutable std::mutex mutex_;
  Error found_{.kind = ErrorKind::timeout, .text = "looking up its name takes long"};
};

// The error of a worker that has looked for the store in vain, from what it found last.
Error not_opened(const Address& master, const std::string& server, const Error& found) {
  const std::string where = "the rendezvous at " + to_string(master);
  switch (found.kind) {
    case ErrorKind::overloaded:
      return failure(found.kind, where + " cannot be reached: " + found.text);
    case ErrorKind::protocol:
      return failure(ErrorKind::bad_arguments,
                     "another program has the port of " + where + ": " + found.text +
                         "; choose another one (MASTER_PORT, --rendezvous)");
    case ErrorKind::timeout:
      return failure(found.kind, where + " does not answer: " + found.text + "; rank 0 ('" +
                                     server + "') hangs, or another program has that port");
    default:
      return failure(ErrorKind::timeout, "nobody serves " + where + ": " + found.text +
                                             "; is rank 0 ('" + server +
                                             "') running, and is the address right?");
  }
}

// Opens a client of the store at `master` as soon as it is there. Owns what it uses.
StorePtr connect(const Address& master, Clock::time_point deadline, Opening& opening) {
  while (!opening.abandoned) {
    const Clock::time_point limit =
        std::min<Clock::time_point>(deadline, Clock::now() + kConnectLimit);
    const Result<Address> asked = ask_store(master, limit);
    if (asked.ok())
      return c10::make_intrusive<c10d::TCPStore>(asked.value().host,
                                                 store_options(master, deadline));
    opening.found(asked.error());
    const bool may_come =
        asked.error().kind == ErrorKind::peer_lost || asked.error().kind == ErrorKind::timeout;
    if (!may_come || Clock::now() >= deadline) break;
    std::this_thread::sleep_for(kConnectsApart);
  }
  return {};
}

Result<StorePtr> open_client(const Address& master, const std::string& server, Patience& patience) {
  auto opening = std::make_shared<Opening>();
  const Clock::time_point deadline = patience.deadline();
  const std::function<StorePtr()> work = [master, deadline, opening] {
    return connect(master, deadline, *opening);
  };
  const auto opened = within<StorePtr>(deadline + kConnectsApart, work, [&] {
    patience.waits_for([&] {
      return "rank 0 ('" + server + "') to serve the rendezvous at " + to_string(master) + " (" +
             opening->found().text + ")";
    });
  });
  opening->abandoned = true;
  if (opened && *opened) return *opened;
  return not_opened(master, server, opening->found());
}

// The last of so many workers removes the file. A worker that refuses to join does not know how
// many they are, and leaves it: others have yet to read why.
Result<StorePtr> open_file(const std::string& path, size_t workers,
                           const std::shared_ptr<StoreFile>& file, Patience& patience) {
  const int count = workers == 0 ? -1 : static_cast<int>(workers);
  const std::function<Result<StorePtr>()> work = [path, count, file]() -> Result<StorePtr> {
    if (Status whole = file->check(); !whole.ok()) return whole.error();
    return StorePtr(c10::make_intrusive<c10d::FileStore>(path, count));
  };
  const auto opened = within(patience.deadline(), work, [&] {
    patience.waits_for("the rendezvous, the file " + path + ": " + kFileIsLocked);
  });
  if (opened) return *opened;
  return failure(ErrorKind::timeout, path + " cannot be opened in time: " + kFileIsLocked);
}

// The group that a store at a port that cannot be had belongs to: "; there is …".
std::string announced_at(const Address& master, const Seal& seal) {
  const Clock::time_point deadline = Clock::now() + kLookLimit;
  const std::function<std::string()> work = [master, deadline]() -> std::string {
    const Result<Address> asked = ask_store(master, deadline);
    if (!asked.ok()) return "";
    const auto store =
        c10::make_intrusive<c10d::TCPStore>(asked.value().host, store_options(master, deadline));
    const StorePtr root = c10::make_intrusive<c10d::PrefixStore>(kRoot, store);
    return root->check({kAnnouncement}) ? root->get_to_str(kAnnouncement) : "";
  };
  try {
    const std::string text = within(deadline, work).value_or("");
    if (text.empty()) return "";
    const Result<std::string> opened = seal.open(kAnnouncement, text);
    if (!opened.ok()) return "; " + opened.error().text;
    const auto card = decode_card(opened.value());
    return card ? "; there is " + describe(*card) : "";
  } catch (const std::exception&) {
    return "";
  }
}

// Waits until the resolver knows a host: a name may be given away a moment after the process.
Status wait_until_known(const Address& master, Patience& patience) {
  const std::function<Status()> look_up = [master]() -> Status {
    const Result<Addresses> found = numeric_addresses_of(master);
    if (!found.ok()) return found.error();
    return Unit{};
  };
  while (true) {
    const Status known =
        within(patience.deadline(), look_up)
            .value_or(failure(ErrorKind::timeout,
                              "looking up the name of " + to_string(master) + " takes long"));
    if (known.ok() || known.error().kind == ErrorKind::overloaded || patience.is_over())
      return known;
    patience.waits_for("a name that is known, to serve the rendezvous (" + known.error().text +
                       ")");
    std::this_thread::sleep_for(kConnectsApart);
  }
}

Result<FileDescriptor> open_listening(const Placement& placement, Patience& patience) {
  if (placement.listening) return listening_socket(*placement.listening);
  if (Status known = wait_until_known(placement.master, patience); !known.ok())
    return known.error();
  const std::function<Result<FileDescriptor>()> listen = [placement] {
    return listen_as(placement.master, placement.for_others);
  };
  auto listening = within(patience.deadline(), listen);
  if (listening) return std::move(*listening);
  return failure(ErrorKind::timeout,
                 "looking up the name of " + to_string(placement.master) + " takes long");
}

// Where this process reaches a socket of its own.
Result<Address> reach_own(const Address& listening) {
  const bool both = listening.host == "::";
  const Addresses places = !is_anywhere(listening.host) ? Addresses{listening}
                           : both
                               ? Addresses{{"::1", listening.port}, {"127.0.0.1", listening.port}}
                               : Addresses{{"127.0.0.1", listening.port}};
  const auto each = std::chrono::milliseconds(kLookLimit) / static_cast<int64_t>(places.size());
  Error why;
  for (const Address& place : places) {
    const Result<FileDescriptor> reached = connect_within(place, Clock::now() + each);
    if (reached.ok()) return place;
    why = reached.error();
  }
  return why;
}

// The others look for the store at the address that they were given: if that is not ours, or does
// not lead here, they look in vain, unless it leads here from there only.
void check_own_name(const Address& master, const Patience& patience) {
  const std::function<std::string()> work = [master]() -> std::string {
    const Result<FileDescriptor> reached = connect_within(master, Clock::now() + kLookLimit);
    return reached.ok() ? "" : reached.error().text;
  };
  const std::string why =
      within(Clock::now() + kLookLimit, work).value_or("looking up its name takes long");
  if (why.empty()) return;
  patience.tell(
      "serves the rendezvous at all addresses of this machine, but does not reach it at " +
      to_string(master) + " itself (" + why + "): is that the address of rank 0?");
}

// It listens where this machine is reached from the others.
Result<StorePtr> serve(const Placement& placement, const Seal& seal, Patience& patience) {
  const Address& master = placement.master;
  const Result<FileDescriptor> socket = open_listening(placement, patience);
  if (!socket.ok())
    return failure(ErrorKind::bad_arguments, "rank 0 cannot serve the rendezvous: " +
                                                 socket.error().text + announced_at(master, seal));
  const Address listening = local_address(socket.value());
  const Result<Address> own = reach_own(listening);
  if (!own.ok())
    return failure(ErrorKind::timeout, "rank 0 does not reach the rendezvous at " +
                                           to_string(listening) +
                                           " that it serves itself: " + own.error().text);
  c10d::TCPStoreOptions options = store_options(master, patience.deadline());
  options.isServer = true;
  options.masterListenFd = dup(socket.value().get());  // the store owns it
  const std::function<StorePtr()> work = [host = own.value().host, options]() -> StorePtr {
    return c10::make_intrusive<c10d::TCPStore>(host, options);
  };
  const auto opened = within(patience.deadline(), work);
  if (!opened)
    return failure(ErrorKind::timeout, "rank 0 cannot use the rendezvous at " + to_string(master) +
                                           " that it serves itself");
  if (is_anywhere(listening.host) && !placement.listening) check_own_name(master, patience);
  return *opened;
}

}  // namespace

class MeetingStore::Impl {
 public:
  // `file`: null if it is served.
  Impl(StorePtr made, const std::string& run, const Seal& seal, std::string silence,
       std::shared_ptr<StoreFile> file)
      : all(std::move(made)),
        file(std::move(file)),
        run(c10::make_intrusive<c10d::PrefixStore>("rehearsal/" + run, all)),
        root(c10::make_intrusive<c10d::PrefixStore>(kRoot, all)),
        seal(seal),
        silence(std::move(silence)),
        prefix(run + "/") {}
  // c10d's store reads its file once more as it ends; one that is cut short it would read for ever,
  // so it stays as long as the process.
  ~Impl() {
    if (file == nullptr || file->check().ok()) return;
    static std::mutex mutex;
    static auto* const kept = new std::vector<StorePtr>();
    const std::lock_guard lock(mutex);
    kept->push_back(all);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void check_file() const {
    if (file == nullptr) return;
    if (Status whole = file->check(); !whole.ok()) throw std::runtime_error(whole.error().text);
  }
  [[nodiscard]] std::string close(const std::string& key, const std::string& text) const {
    return seal.close(prefix + key, text);
  }
  [[nodiscard]] std::string open(const std::string& place, const std::string& text) const {
    Result<std::string> opened = seal.open(place, text);
    if (!opened.ok()) throw ForeignText(opened.error().text);
    return std::move(opened).value();
  }

  const StorePtr all;
  const std::shared_ptr<StoreFile> file;
  const StorePtr run, root;
  const Seal seal;
  const std::string silence;  // why it may not answer
  const std::string prefix;   // of the run's keys, as the seal knows them
};

MeetingStore::MeetingStore(std::shared_ptr<const Impl> impl, Patience* patience)
    : impl_(std::move(impl)), patience_(patience) {}

// c10d's store of a file takes the file's lock once more as it ends: it waits without a limit for a
// process that holds the lock and has stopped.
MeetingStore::~MeetingStore() {
  std::function<bool()> end = [impl = std::move(impl_)]() mutable {
    impl.reset();
    return true;
  };
  try {
    (void)within(Clock::now() + kStoreAnswerLimit, std::move(end));
  } catch (const std::system_error&) {
    // There is no thread to be had: it has ended here.
  }
}

std::string MeetingStore::place(const Placement& placement) {
  return placement.file.empty() ? to_string(placement.master) : placement.file;
}

bool MeetingStore::served_by_worker(const Placement& placement) {
  return placement.file.empty() && !placement.agent_serves;
}

bool MeetingStore::reachable(const Placement& placement) {
  if (!placement.file.empty()) return true;
  const Clock::time_point deadline = Clock::now() + kLookLimit;
  const std::function<bool()> work = [master = placement.master, deadline] {
    return ask_store(master, deadline).ok();
  };
  return within(deadline, work).value_or(false);
}

Result<std::unique_ptr<MeetingStore>> MeetingStore::open(const Placement& placement,
                                                         const std::vector<std::string>& names,
                                                         const Seal& seal, Patience& patience) {
  const std::string server = names.empty() ? "rank 0" : names.front();
  Result<StorePtr> made = StorePtr();
  std::shared_ptr<StoreFile> file;
  try {
    if (!placement.file.empty()) {
      file = std::make_shared<StoreFile>(placement.file);
      made = open_file(placement.file, names.size(), file, patience);
    } else if (placement.rank == 0 && !placement.agent_serves) {
      made = serve(placement, seal, patience);
    } else {
      made = open_client(placement.master, server, patience);
    }
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return failure(ErrorKind::peer_lost, "the rendezvous at " + place(placement) +
                                             " cannot be used: " + text.substr(0, text.find('\n')));
  }
  if (!made.ok()) return made.error();
  StorePtr store = std::move(made).value();
  store->setTimeout(left_until(patience.deadline()));
  const std::string silence = placement.file.empty() ? "whoever serves it hangs" : kFileIsLocked;
  return std::unique_ptr<MeetingStore>(new MeetingStore(
      std::make_shared<const Impl>(std::move(store), placement.run, seal, silence, std::move(file)),
      nullptr));
}

std::unique_ptr<MeetingStore> MeetingStore::of_run(const std::string& run) const {
  return std::unique_ptr<MeetingStore>(new MeetingStore(
      std::make_shared<const Impl>(impl_->all, run, impl_->seal, impl_->silence, impl_->file),
      patience_));
}

// c10d waits for an answer without a limit.
template <class Value, class Call>
Value MeetingStore::bounded(Call call) const {
  const Clock::time_point now = Clock::now();
  // The last questions of a worker whose time is over are those that say why.
  const Clock::time_point limit =
      patience_ == nullptr
          ? now + kStoreAnswerLimit
          : std::max<Clock::time_point>(patience_->deadline(), now + kConnectLimit);
  const std::function<Value()> work = [impl = impl_, call] {
    impl->check_file();
    return call(*impl);
  };
  auto answer = within(limit, work, [this] {
    if (patience_ != nullptr)
      patience_->waits_for("an answer of the rendezvous, which whoever serves it owes");
  });
  if (!answer) throw std::runtime_error("it does not answer: " + impl_->silence);
  return std::move(*answer);
}

int64_t MeetingStore::add(const std::string& key, int64_t value) {
  return bounded<int64_t>([key, value](const Impl& impl) { return impl.run->add(key, value); });
}

void MeetingStore::set(const std::string& key, const std::string& value) {
  (void)bounded<bool>([key, value](const Impl& impl) {
    impl.run->set(key, impl.close(key, value));
    return true;
  });
}

std::string MeetingStore::set_if_missing(const std::string& key, const std::string& value) {
  return bounded<std::string>([key, value](const Impl& impl) {
    const std::string there = impl.run->compareSet(key, std::string(), impl.close(key, value));
    return impl.open(impl.prefix + key, there);
  });
}

bool MeetingStore::erase(const std::string& key) {
  return bounded<bool>([key](const Impl& impl) { return impl.run->deleteKey(key); });
}

std::string MeetingStore::get(const std::string& key) {
  return bounded<std::string>(
      [key](const Impl& impl) { return impl.open(impl.prefix + key, impl.run->get_to_str(key)); });
}

bool MeetingStore::has(const std::vector<std::string>& keys) {
  return bounded<bool>([keys](const Impl& impl) { return impl.run->check(keys); });
}

void MeetingStore::announce(const std::string& text) {
  (void)bounded<bool>([text](const Impl& impl) {
    impl.root->set(kAnnouncement, impl.seal.close(kAnnouncement, text));
    return true;
  });
}

std::optional<std::string> MeetingStore::announced() {
  return bounded<std::optional<std::string>>([](const Impl& impl) -> std::optional<std::string> {
    if (!impl.root->check({kAnnouncement})) return std::nullopt;
    return impl.open(kAnnouncement, impl.root->get_to_str(kAnnouncement));
  });
}

}  // namespace rehearsal::real
