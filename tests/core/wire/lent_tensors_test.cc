// Goal: a lent tensor comes as its sizes and its ticket, in both forms of an envelope, and one that
// cannot be is refused.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstring>
#include <memory>
#include <string>

#include "core/wire/message.h"
#include "core/wire/protobuf_codec.h"

namespace rehearsal::lent_tensors_test {
namespace {

const std::string kLoan7 = std::string("\7\0\0\0\0\0\0\0", 8);

// As a sender makes it, or should not.
SentTensor lent(const std::string& segment, DeviceCode to = 1) {
  SentTensor sent;
  sent.entry = {.dtype = static_cast<uint32_t>(at::kFloat),
                .requires_grad = true,
                .place = {.from = 2, .to = to},
                .lent = true};
  sent.sizes = {2, 3};
  auto bytes = std::make_shared<std::string>(segment);
  sent.elements = {
      .owner = bytes, .data = reinterpret_cast<std::byte*>(bytes->data()), .bytes = bytes->size()};
  return sent;
}

Payload payload_of(std::vector<SentTensor> sent) {
  Payload payload;
  payload.tensors.resize(sent.size());
  payload.sent = std::move(sent);
  return payload;
}

// In the form of calls, and in that of other messages.
std::vector<Message> messages_with(const Payload& payload) {
  return {Message{Call{.arguments = payload}}, Message{Item{.value = payload}}};
}

const Payload& payload_in(const Message& message) {
  if (const auto* call = std::get_if<Call>(&message.content)) return call->arguments;
  return std::get<Item>(message.content).value;
}

Result<Message> through(const Message& message) {
  const std::unique_ptr<Codec> codec = make_protobuf_codec();
  return codec->decode(*codec->encode(message));
}

void expect_refused(const SentTensor& sent, const std::string& why) {
  for (const Message& message : messages_with(payload_of({sent}))) {
    const Result<Message> back = through(message);
    ASSERT_FALSE(back.ok()) << why;
    EXPECT_NE(back.error().text.find(why), std::string::npos) << back.error().text;
  }
}

TEST(LentTensors, ComeBackAsTheirSizesAndTheirTickets) {
  SentTensor none = lent("");
  none.entry = {.undefined = true};
  none.sizes.clear();
  none.elements = {};
  for (const Message& message :
       messages_with(payload_of({none, lent(kLoan7 + "a ticket"), none}))) {
    const Result<Message> back = through(message);
    ASSERT_TRUE(back.ok()) << back.error().text;
    const Payload& payload = payload_in(back.value());
    ASSERT_EQ(payload.tensors.size(), 3u);
    const at::Tensor& placeholder = payload.tensors[1];
    EXPECT_TRUE(placeholder.is_meta());
    EXPECT_EQ(placeholder.sizes(), c10::IntArrayRef({2, 3}));
    EXPECT_EQ(placeholder.scalar_type(), at::kFloat);
    EXPECT_TRUE(placeholder.requires_grad());
    EXPECT_EQ(payload.devices->places.at(1), (TensorPlace{.from = 2, .to = 1}));
    ASSERT_EQ(payload.devices->borrowed.size(), 3u);
    EXPECT_EQ(payload.devices->borrowed[0], nullptr);
    EXPECT_EQ(payload.devices->borrowed[2], nullptr);
    ASSERT_NE(payload.devices->borrowed[1], nullptr);
    EXPECT_EQ(payload.devices->borrowed[1]->loan(), 7u);
    EXPECT_EQ(payload.devices->borrowed[1]->ticket(), "a ticket");
  }
}

TEST(LentTensors, MustGoToADevice) {
  expect_refused(lent(kLoan7 + "a ticket", 0), "a lent tensor that goes to no device");
}

TEST(LentTensors, HaveATicketOfOrdinaryLength) {
  expect_refused(lent(kLoan7), "a ticket that is none");
  expect_refused(lent("1234567"), "a ticket that is none");
  expect_refused(lent(kLoan7 + std::string(kTicketBytesMax + 1, 't')), "a ticket that is none");
  SentTensor without = lent(kLoan7);
  without.elements = {};
  expect_refused(without, "a tensor without its segment");
}

TEST(LentTensors, AreDense) {
  SentTensor strided = lent(kLoan7 + "a ticket");
  strided.entry.form = TensorForm::strided;
  strided.numbers = {1, 2};
  expect_refused(strided, "a lent tensor that is not dense");
}

TEST(LentTensors, AreReturnedByTheirNumbers) {
  const Result<Message> back = through(Message{LoansReturned{{3, UINT64_MAX}}});
  ASSERT_TRUE(back.ok()) << back.error().text;
  EXPECT_EQ(std::get<LoansReturned>(back.value().content).loans,
            (std::vector<LoanId>{3, UINT64_MAX}));
}

}  // namespace
}  // namespace rehearsal::lent_tensors_test
