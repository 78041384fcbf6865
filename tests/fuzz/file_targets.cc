#include <ATen/Functions.h>

#include <cstring>
#include <exception>
#include <type_traits>
#include <variant>

#include "core/base/hash.h"
#include "core/checkpoint/checkpoint_head.h"
#include "core/checkpoint/plain_pickle.h"
#include "record/item.h"
#include "record/record_file.h"
#include "record/record_header.h"
#include "record/ring_file.h"
#include "tests/fuzz/target.h"

// Files that a worker wrote, as somebody may have changed them.
namespace rehearsal::fuzz {
namespace {

using namespace record;
using record::Item;  // not the message

// ---- records -----------------------------------------------------------------------

std::string bytes_of(const Item& item) {
  std::string bytes;
  std::visit(
      [&bytes](const auto& known) {
        using Known = std::decay_t<decltype(known)>;
        if constexpr (!std::is_same_v<Known, FrameReceived> && !std::is_same_v<Known, PeerUp>)
          append_bytes(known, bytes);
      },
      item);
  return bytes;
}

void read_item(const std::string& bytes) {
  const std::optional<Item> item = item_of(bytes);
  if (!item) return;
  const std::string once = bytes_of(*item);
  if (once.empty()) return;
  const std::optional<Item> again = item_of(once);
  must(again && bytes_of(*again) == once, "an item is read as it was written");
}

void read_header(const std::string& text) {
  const std::optional<RecordHeader> header = header_of(text);
  if (!header) return;
  const std::string once = text_of(*header);
  const std::optional<RecordHeader> again = header_of(once);
  must(again && text_of(*again) == once, "a record's header is read as it was written");
}

// Gives header and items the checksums that they should have.
void mend_checksums(std::string& file) {
  Preface preface{};
  if (file.size() < kTextOffset) return;
  std::memcpy(&preface, file.data(), sizeof preface);
  if (preface.text_bytes > file.size() - kTextOffset) return;
  preface.text_checksum = hash_bytes(file.data() + kTextOffset, preface.text_bytes);
  std::memcpy(file.data(), &preface, sizeof preface);
  uint64_t place = 0;
  while (preface.ring_offset <= file.size() &&
         place + sizeof(ItemFrame) <= file.size() - preface.ring_offset) {
    char* at = file.data() + preface.ring_offset + place;
    ItemFrame frame{};
    std::memcpy(&frame, at, sizeof frame);
    place += sizeof frame;
    if (frame.bytes > file.size() - preface.ring_offset - place) return;
    frame.checksum = checksum_of({at + sizeof frame, frame.bytes}, place);
    std::memcpy(at, &frame, sizeof frame);
    place += frame.bytes;
  }
}

void read_whole_record(std::string bytes) {
  static MemoryFile file;
  mend_checksums(bytes);
  file.set(bytes);
  (void)looks_like_record(file.path());
  auto read = read_record(file.path());
  must(read.ok() || read.error().text.starts_with(file.path()), "an error of a file names it");
  if (!read.ok()) return;
  const size_t workers = read.value()->header.node.names.size();
  for (const Item& item : read.value()->items) {
    const auto* frame = std::get_if<FrameReceived>(&item);
    const auto* lost = std::get_if<PeerLost>(&item);
    const auto* drained = std::get_if<Drained>(&item);
    must((frame == nullptr || frame->peer.value < workers) &&
             (lost == nullptr || lost->peer.value < workers) &&
             (drained == nullptr || drained->peer.value < workers),
         "a record's links are to workers that there are");
  }
}

void read_record_bytes(Bytes bytes) {
  Input input(bytes);
  const uint8_t part = input.byte() % 3;
  if (part == 0) return read_item(input.rest());
  if (part == 1) return read_header(input.rest());
  read_whole_record(input.rest());
}

std::vector<std::string> items() {
  std::vector<std::string> all;
  const auto add = [&all](const auto&... item) { append_bytes(item..., all.emplace_back()); };
  const Error error{.kind = ErrorKind::peer_lost, .text = "gone", .worker = "w", .chain = {"x"}};
  auto body = std::make_shared<FrameBody>();
  body->envelope = "envelope";
  add(WorkerId{1},
      Frame{.header = {.source = {7}, .destination = {8}, .sequence = 3}, .body = body});
  add(Posted{{Source::Kind::execution, 9}, 0x12345678, {{Reading::Kind::now, 5}}});
  add(Posted{{Source::Kind::main, 0}, 1, {{Reading::Kind::loaded, 0, "bytes"}}});
  add(PeerLost{{0}, error, true});
  add(Drained{{1}});
  add(PeerRefused{{1}, {}});
  add(Fired{7});
  add(Aborted{error});
  add(Read{Read::Kind::queued_bytes, 12});
  add(Outcome{{1, 2, UINT64_MAX}});
  add(Ended{error});
  return all;
}

RecordHeader some_header() {
  RecordHeader header{.build = "0123", .greeting = "hello", .torch_threads = 2};
  header.node.id = {1};
  header.node.incarnation = {77};
  header.node.names = {"ps", "trainer"};
  header.arguments = {"run", "storm", "--seed", "3"};
  return header;
}

std::string whole_record() {
  const std::string text = text_of(some_header());
  std::string ring;
  for (const std::string& item : items()) {
    const ItemFrame frame{static_cast<uint32_t>(item.size()), 0};
    ring.append(reinterpret_cast<const char*>(&frame), sizeof frame) += item;
  }
  Preface preface{};
  std::memcpy(preface.magic, kMagic, sizeof kMagic);
  preface.version = kVersion;
  preface.text_bytes = static_cast<uint32_t>(text.size());
  preface.ring_offset = kTextOffset + text.size();
  preface.ring_bytes = preface.written = ring.size();
  std::string file(reinterpret_cast<const char*>(&preface), sizeof preface);
  file.resize(kTextOffset);
  return file + text + ring;
}

std::vector<std::string> first_records() {
  std::vector<std::string> inputs = {'\1' + text_of(some_header()), '\2' + whole_record()};
  for (const std::string& item : items()) inputs.push_back('\0' + item);
  return inputs;
}

// ---- checkpoints -------------------------------------------------------------------

void compute_with(const at::Tensor& tensor) {
  constexpr int64_t kElementsMax = 1 << 16;
  if (tensor.defined() && tensor.layout() == c10::kStrided && tensor.numel() <= kElementsMax)
    (void)tensor.clone();
}

void read_checkpoint(Bytes bytes) {
  Input input(bytes);
  try {
    const c10::IValue value = unpickle(input.rest());
    value.visit([](const c10::IValue& part) {
      if (part.isTensor()) compute_with(part.toTensor());
      return false;
    });
    (void)checkpoint_head(value);
  } catch (const std::exception&) {  // It is none.
  }
}

std::vector<std::string> first_checkpoints() {
  CheckpointHead head;
  head.slots[0] = CheckpointCopy{{}, {"ps", "trainer"}, {"model"}};
  c10::impl::GenericDict tensors = any_dictionary();
  tensors.insert("weight", at::ones({3, 4}));
  tensors.insert("view", at::arange(12).reshape({3, 4}).t());
  return {plain_pickle(to_ivalue(head)), plain_pickle(tensors)};
}

}  // namespace

std::vector<Target> file_targets() {
  return {{"record", "a record of a worker: its items, its header, the whole file",
           &read_record_bytes, &first_records},
          {"checkpoint", "the file that says which checkpoints are there", &read_checkpoint,
           &first_checkpoints}};
}

}  // namespace rehearsal::fuzz
