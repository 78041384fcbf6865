#include "core/checkpoint/pickle_scan.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "core/checkpoint/crowded_keys.h"
#include "core/checkpoint/pickle_functions.h"
#include "core/checkpoint/pickle_value.h"

namespace rehearsal {
namespace {

using Kind = PickleValue::Kind;

constexpr uint8_t kDepthMax = 64;

class Scan {
 public:
  Scan(std::string_view pickle, const StoredRecords& records, uint64_t file_bytes)
      : heap_{.pickle = pickle, .elements = {}},
        functions_(records, heap_),
        left_(pickle),
        visits_max_((uint64_t{1} << 16) + 16 * pickle.size()),
        bytes_max_(PickleFunctions::bytes_max(file_bytes)) {}

  bool run() {
    TORCH_CHECK(heap_.pickle.size() <= UINT32_MAX, "its pickle is larger than 4 GiB");
    TORCH_CHECK(number(1) == 0x80 && number(1) == 2, "it is no pickle of protocol 2");
    while (step()) {
    }
    TORCH_CHECK(stack_.size() == 1 && marks_.empty() && left_.empty() && !stack_[0].internal,
                "its pickle does not end with one value");
    return has_composites_;
  }

 private:
  // False at the end.
  bool step() {
    const uint64_t opcode = number(1);
    switch (opcode) {
      case '.':
        return false;
      case '(':
        marks_.push_back(stack_.size());
        break;
      case 0x85:  // TUPLE1, TUPLE2, TUPLE3
      case 0x86:
      case 0x87:
        make_tuple(opcode - 0x84);
        break;
      case ')':
        make_tuple(0);
        break;
      case 't': {
        const size_t count = stack_.size() - last_mark();
        marks_.pop_back();
        make_tuple(count);
        break;
      }
      case 'e':
        fill_list();
        break;
      case 'u':
        fill_dictionary();
        break;
      case 'q':  // BINPUT, LONG_BINPUT
        remember(number(1));
        break;
      case 'r':
        remember(number(4));
        break;
      case 'h':  // BINGET, LONG_BINGET
        push(remembered(number(1)));
        break;
      case 'j':
        push(remembered(number(4)));
        break;
      case 'Q':
        push(functions_.storage(pop()));
        break;
      case 'R':
        call();
        break;
      default:
        push(leaf(opcode));
    }
    return true;
  }

  // A value that is made of nothing but the bytes behind its opcode.
  PickleValue leaf(uint64_t opcode) {
    switch (opcode) {
      case 'N':
        return {};
      case 0x88:  // NEWTRUE, NEWFALSE
      case 0x89:
        return {.kind = Kind::truth, .number = opcode == 0x88};
      case 'K':
        return whole(static_cast<int64_t>(number(1)));
      case 'M':
        return whole(static_cast<int64_t>(number(2)));
      case 'J':
        return whole(static_cast<int32_t>(number(4)));
      case 0x8a:  // LONG1
        TORCH_CHECK(number(1) == sizeof(int64_t), "it has a number that is too long");
        return whole(static_cast<int64_t>(number(sizeof(int64_t))));
      case 'G':
        return {.kind = Kind::floating,
                .number = static_cast<int64_t>(__builtin_bswap64(number(sizeof(double))))};
      case 'X':
        return text();
      case ']':
        return {.kind = Kind::list, .depth = 1, .open = true};
      case '}':
        return {.kind = Kind::dictionary, .depth = 1, .open = true};
      case 'c': {
        const std::string_view module = line();
        return PickleFunctions::function(module, line());
      }
      default:
        TORCH_CHECK(false, "opcode ", opcode, " of its pickle is in no checkpoint of ours");
    }
  }

  // ---- bytes ----

  std::string_view take(size_t bytes) {
    TORCH_CHECK(bytes <= left_.size(), "its pickle is cut off");
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }

  uint64_t number(size_t bytes) {
    uint64_t number = 0;
    std::memcpy(&number, take(bytes).data(), bytes);
    return number;
  }

  std::string_view line() {
    const size_t end = left_.find('\n');
    TORCH_CHECK(end != std::string_view::npos, "its pickle is cut off");
    return take(end + 1).substr(0, end);
  }

  static PickleValue whole(int64_t number) { return {.kind = Kind::whole, .number = number}; }

  PickleValue text() {
    const size_t bytes = number(4);
    const size_t begin = heap_.pickle.size() - left_.size();
    take(bytes);
    return {.kind = Kind::text,
            .count = static_cast<uint32_t>(bytes),
            .number = static_cast<int64_t>(begin),
            .bytes = bytes};
  }

  // ---- the stack ----

  void push(PickleValue value) {
    TORCH_CHECK(value.visits <= visits_max_ && value.bytes <= bytes_max_,
                "its values are far more than the file is large");
    if (value.kind == Kind::composite) has_composites_ = true;
    stack_.push_back(value);
  }

  [[nodiscard]] size_t last_mark() const {
    TORCH_CHECK(!marks_.empty(), "its pickle ends what has not begun");
    return marks_.back();
  }

  // No opcode reaches below the last mark, except those that end what it begins.
  void need(size_t values) const {
    const size_t bottom = marks_.empty() ? 0 : marks_.back();
    TORCH_CHECK(values <= stack_.size() - bottom, "its pickle uses values that are not there");
  }

  PickleValue pop() {
    need(1);
    const PickleValue value = stack_.back();
    stack_.pop_back();
    return value;
  }

  // ---- containers ----

  void add(PickleValue& container, const PickleValue& element) const {
    TORCH_CHECK(element.depth < kDepthMax, "its values lie more than 64 deep in each other");
    container.depth = std::max<uint8_t>(container.depth, element.depth + 1);
    container.visits += element.visits;
    container.bytes += element.bytes;
    TORCH_CHECK(container.visits <= visits_max_ && container.bytes <= bytes_max_,
                "its values are far more than the file is large");
  }

  void make_tuple(size_t count) {
    need(count);
    PickleValue tuple{.kind = Kind::tuple,
                      .depth = 1,
                      .count = static_cast<uint32_t>(count),
                      .number = static_cast<int64_t>(heap_.elements.size())};
    for (size_t i = stack_.size() - count; i < stack_.size(); ++i) {
      add(tuple, stack_[i]);
      tuple.internal = tuple.internal || stack_[i].internal;
      heap_.elements.push_back(stack_[i]);
    }
    stack_.resize(stack_.size() - count);
    push(tuple);
  }

  // Ends at the last mark: the container below it, and where on the stack its elements begin.
  std::pair<PickleValue&, size_t> opened(Kind kind) {
    const size_t begin = last_mark();
    marks_.pop_back();
    need(stack_.size() - begin + 1);
    PickleValue& container = stack_[begin - 1];
    TORCH_CHECK(container.kind == kind && container.open, "its pickle fills what is not empty");
    container.open = false;
    return {container, begin};
  }

  void check_element(const PickleValue& element) const {
    TORCH_CHECK(!element.internal, "its pickle keeps what is no value");
  }

  void fill_list() {
    const auto [list, begin] = opened(Kind::list);
    for (size_t i = begin; i < stack_.size(); ++i) {
      check_element(stack_[i]);
      add(list, stack_[i]);
      list.count |= as_set(stack_[i].kind);
    }
    stack_.resize(begin);
  }

  void fill_dictionary() {
    const auto [dictionary, begin] = opened(Kind::dictionary);
    TORCH_CHECK((stack_.size() - begin) % 2 == 0, "it has a key without a value");
    std::vector<uint64_t> hashes;
    for (size_t i = begin; i < stack_.size(); ++i) {
      const bool is_key = (i - begin) % 2 == 0;
      check_element(stack_[i]);
      add(dictionary, stack_[i]);
      dictionary.count |= as_set(stack_[i].kind) << (is_key ? 0 : kValuesShift);
      if (is_key) add_hash(stack_[i], hashes);
    }
    TORCH_CHECK(!are_crowded(std::move(hashes)), "it has a dictionary whose keys collide");
    stack_.resize(begin);
  }

  // As c10::detail::DictKeyHash hashes it. Tensors are hashed by their addresses, which no file
  // chooses, and of devices there are few.
  void add_hash(const PickleValue& key, std::vector<uint64_t>& hashes) const {
    switch (key.kind) {
      case Kind::text:
        return hashes.push_back(std::hash<std::string_view>()(heap_.text(key)));
      case Kind::floating:
        return hashes.push_back(std::hash<double>()(std::bit_cast<double>(key.number)));
      case Kind::truth:
      case Kind::whole:
      case Kind::complex:
        return hashes.push_back(static_cast<uint64_t>(key.number));
      case Kind::device:
      case Kind::tensor:
      case Kind::composite:
        return;
      default:
        TORCH_CHECK(false, "it has a key that cannot be one");
    }
  }

  void call() {
    need(2);
    const PickleValue arguments = pop();
    push(functions_.call(pop(), arguments));
  }

  // ---- memory ----

  // The Pickler counts them, and remembers what is whole.
  void remember(uint64_t place) {
    need(1);
    TORCH_CHECK(place == memory_.size(), "its pickle remembers values out of order");
    TORCH_CHECK(!stack_.back().open, "its pickle remembers what is not whole");
    memory_.push_back(stack_.back());
  }

  [[nodiscard]] const PickleValue& remembered(uint64_t place) const {
    TORCH_CHECK(place < memory_.size(), "its pickle remembers what it has not");
    return memory_[place];
  }

  PickleHeap heap_;
  PickleFunctions functions_;
  std::string_view left_;
  const uint64_t visits_max_;
  const uint64_t bytes_max_;
  std::vector<PickleValue> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::vector<PickleValue> memory_;
  bool has_composites_ = false;
};

}  // namespace

bool scan_pickle(std::string_view pickle, const StoredRecords& records, uint64_t file_bytes) {
  return Scan(pickle, records, file_bytes).run();
}

}  // namespace rehearsal
