#include "scenarios/parameter_server/digits.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <array>
#include <string_view>

#include "core/base/hash.h"
#include "core/base/ids.h"
#include "scenarios/storm/dice.h"

namespace rehearsal::parameter_server {
namespace {

constexpr int64_t kWidth = 5;
constexpr int64_t kHeight = 7;
constexpr int64_t kLeft = 1;    // the least of columns to the left
constexpr int64_t kPlaces = 3;  // that a letter may have, across and down
constexpr double kNoise = 0.2;
constexpr double kMean = 0.2;  // of a picture, about, and its deviation
constexpr double kDeviation = 0.4;

// Row by row.
constexpr std::array<std::string_view, kDigitCount> kFont = {
    " ### #   ##  ### # ###  ##   # ### ", "  #   ##    #    #    #    #   ### ",
    " ### #   #    #   #   #   #   #####", "#####   #   #     #     ##   # ### ",
    "   #   ##  # # #  # #####   #    # ", "######    ####     #    ##   # ### ",
    "  ##  #   #    #### #   ##   # ### ", "#####    #   #   #   #    #    #   ",
    " ### #   ##   # ### #   ##   # ### ", " ### #   ##   # ####    #   #  ##  "};

void draw_letter(storm::Dice& dice, int64_t digit, float* picture) {
  const auto right = kLeft + static_cast<int64_t>(dice.draw(kPlaces));
  const auto down = static_cast<int64_t>(dice.draw(kPlaces));
  const float brightness = 0.7F + 0.1F * static_cast<float>(dice.draw(7));
  const std::string_view letter = kFont[static_cast<size_t>(digit)];
  for (int64_t y = 0; y < kHeight; ++y)
    for (int64_t x = 0; x < kWidth; ++x)
      if (letter[static_cast<size_t>(y * kWidth + x)] == '#')
        picture[(down + y) * kPictureSide + right + x] = brightness;
}

}  // namespace

Digits draw_digits(uint64_t seed, int64_t count) {
  constexpr int64_t kPixels = kPictureSide * kPictureSide;
  at::Tensor pictures = at::zeros({count, 1, kPictureSide, kPictureSide});
  at::Tensor labels = at::zeros({count}, at::kLong);
  storm::Dice dice(Seed{seed}, hash_text("digits"));
  for (int64_t i = 0; i < count; ++i) {
    const auto digit = static_cast<int64_t>(dice.draw(kDigitCount));
    labels.data_ptr<int64_t>()[i] = digit;
    draw_letter(dice, digit, pictures.data_ptr<float>() + i * kPixels);
  }
  const at::Generator noise = at::make_generator<at::CPUGeneratorImpl>(dice.word());
  pictures = pictures + at::randn(pictures.sizes(), noise) * kNoise;
  return {(pictures - kMean) / kDeviation, labels};
}

Digits part_of(const Digits& digits, int64_t first, int64_t count) {
  return {digits.pictures.narrow(0, first, count), digits.labels.narrow(0, first, count)};
}

}  // namespace rehearsal::parameter_server
