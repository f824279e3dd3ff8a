// test_numerics.cpp: the law's own exp, log, softmax and random numbers against slower and better known ones.
#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

#include "check.h"
#include "dice.h"
#include "numerics.h"
#include "random.h"

using namespace windrow;

namespace {

// Bounds, each a little above the worst that a scan finds. An ulp is the gap between floats at the true result.
constexpr long double kExp32Ulps = 1.25L;
constexpr long double kExp64Error = 2.5e-16L;  // relative
constexpr long double kLog64Error = 5e-16L;    // relative
// A softmax weight is off by kExp32Ulps (2^-23 each) and by half of 2^-36 of the largest; the sum and the division
// round once each. On top comes the rounding of the difference to the largest logit.
constexpr long double kSoftmaxRelative = 3.5L * 0x1p-23L;
constexpr long double kSoftmaxAbsolute = 0x1p-37L;

void test_round_small() {
  Dice dice(1);
  for (int32_t i = 0; i < 200000; ++i) {
    const double sign = dice.one_in(2) ? 1.0 : -1.0, scale = std::exp2(dice.uniform() * 21.9);
    const float narrow = static_cast<float>(sign * scale);
    check(round_small(narrow) == std::nearbyint(narrow), "round_small(float) is not nearbyint");
    const double wide = sign * std::exp2(dice.uniform() * 50.9);
    check(round_small(wide) == std::nearbyint(wide), "round_small(double) is not nearbyint");
  }
  for (int32_t n = -1000; n <= 1000; ++n) {
    const float half = static_cast<float>(n) + 0.5f;
    check(round_small(half) == std::nearbyint(half), "ties of float do not go to even");
    check(round_small(static_cast<double>(half)) == std::nearbyint(static_cast<double>(half)),
          "ties of double do not go to even");
  }
}

void test_exp32() {
  check(exp32(0.0f) == 1.0f && exp32(-0.0f) == 1.0f, "exp32(0) is not 1");
  // Every 499th float from -0 down to the floor, smallest numbers included.
  float before = 1.0f;
  for (uint32_t bits = 0x80000000u; bits <= std::bit_cast<uint32_t>(kExpFloor); bits += 499) {
    const float x = std::bit_cast<float>(bits), got = exp32(x);
    const long double want = std::exp(static_cast<long double>(x));
    const float nearest = static_cast<float>(want);
    const long double ulp = nearest - std::nextafter(nearest, 0.0f);
    check(std::fabs(got - want) <= kExp32Ulps * ulp, "exp32 is off by more than its bound");
    check(got <= 1.0f && got <= before * (1.0f + 0x1p-22f), "exp32 grows on the way down");
    before = got;
  }
  check(static_cast<double>(exp32(kExpFloor)) * kWeightScale < 0.5, "a weight at the floor does not round to zero");
}

void test_exp64_and_log64() {
  check(exp64(0.0) == 1.0 && log64(1.0) == 0.0, "exp64(0) is not 1, or log64(1) not 0");
  check(exp64(-700.1) == 0.0 && exp64(-INFINITY) == 0.0 && exp64(-700.0) > 0.0, "exp64 does not end at -700");
  Dice dice(2);
  for (int32_t i = 0; i < 400000; ++i) {
    const double x = -700.0 * std::pow(dice.uniform(), 4.0);
    const long double want = std::exp(static_cast<long double>(x));
    check(std::fabs(exp64(x) - want) <= kExp64Error * want, "exp64 is off by more than its bound");
  }
  for (int32_t i = 0; i < 400000; ++i) {
    // Half of them any positive double (the smallest too), half near 1, where the logarithm is small itself.
    const uint64_t bits = dice.bits() % 0x7ff0000000000000u;
    const double x = i % 2 == 0 ? std::bit_cast<double>(bits | 1) : 1.0 + (dice.uniform() - 0.5) * std::exp2(-(i % 50));
    const long double want = std::log(static_cast<long double>(x));
    check(std::fabs(log64(x) - want) <= kLog64Error * std::fabs(want), "log64 is off by more than its bound");
  }
}

// The softmax of any number of logits: padded, on a heap block of exactly that size.
std::vector<float> softmax_of(const std::vector<float>& logits) {
  std::vector<float> padded((logits.size() + 3) / 4 * 4, kPadding);
  std::copy(logits.begin(), logits.end(), padded.begin());
  softmax(padded.data(), static_cast<int32_t>(padded.size()));
  for (size_t i = logits.size(); i < padded.size(); ++i) check(padded[i] == 0.0f, "padding has a probability");
  padded.resize(logits.size());
  return padded;
}

void check_softmax(const std::vector<float>& logits) {
  const std::vector<float> got = softmax_of(logits);
  const long double largest = *std::max_element(logits.begin(), logits.end());
  long double total = 0.0L, shift_total = 0.0L, got_total = 0.0L;
  for (const float logit : logits) {
    const long double shift = static_cast<long double>(logit) - largest, weight = std::exp(shift);
    total += weight;
    shift_total -= weight * shift;
  }
  for (size_t i = 0; i < logits.size(); ++i) {
    const long double shift = static_cast<long double>(logits[i]) - largest, want = std::exp(shift) / total;
    const long double rounding = 0x1p-24L * (std::fabs(shift) + shift_total / total);
    check(std::fabs(got[i] - want) <= (kSoftmaxRelative + rounding) * want + kSoftmaxAbsolute,
          "softmax is off by more than its bound");
    check(got[i] >= 0.0f && got[i] <= 1.0f, "a probability is not in [0, 1]");
    got_total += got[i];
  }
  check(std::fabs(got_total - 1.0L) <= kSoftmaxRelative + kSoftmaxAbsolute * static_cast<long double>(logits.size()),
        "softmax does not sum to 1");
}

void test_softmax() {
  Dice dice(3);
  for (const float scale : {0.0f, 1e-6f, 1.0f, 10.0f, 100.0f, 1e30f, FLT_MAX}) {
    for (int32_t count = 1; count <= 70; ++count) {
      scene() = "softmax of " + std::to_string(count) + " logits up to " + std::to_string(scale);
      std::vector<float> logits;
      for (int32_t i = 0; i < count; ++i) logits.push_back(static_cast<float>(2.0 * dice.uniform() - 1.0) * scale);
      if (scale == FLT_MAX) {
        logits[0] = FLT_MAX;
        logits.back() = -FLT_MAX;
      }
      check_softmax(logits);

      // The order of the logits changes no bit.
      const std::vector<float> in_order = softmax_of(logits);
      std::vector<int32_t> places;
      for (int32_t i = 0; i < count; ++i) places.insert(places.begin() + dice.below(i + 1), i);
      std::vector<float> shuffled;
      for (const int32_t place : places) shuffled.push_back(logits[static_cast<size_t>(place)]);
      shuffled = softmax_of(shuffled);
      for (size_t i = 0; i < places.size(); ++i) {
        check(shuffled[i] == in_order[static_cast<size_t>(places[i])], "the order of the logits changes a probability");
      }
    }
  }
  for (int32_t count = 1; count <= 9; ++count) {
    scene() = "softmax of " + std::to_string(count) + " equal logits";
    for (const float logit : {0.0f, 7.5f, -1e30f, FLT_MAX, -FLT_MAX}) {
      for (const float got : softmax_of(std::vector<float>(static_cast<size_t>(count), logit)))
        check(got == 1.0f / static_cast<float>(count), "equal logits are not 1 / count each");
    }
  }
  scene() = "softmax of the largest policies";
  for (const int32_t count : {361, 1968, 65531}) {
    std::vector<float> logits;
    for (int32_t i = 0; i < count; ++i) logits.push_back(static_cast<float>(dice.uniform() * 8.0));
    check_softmax(logits);
  }
  scene().clear();
}

void test_philox() {
  // The known answers of Random123 (kat_vectors, philox 4x32 10).
  struct Known {
    std::array<uint32_t, 4> counter;
    std::array<uint32_t, 2> key;
    std::array<uint32_t, 4> answer;
  };
  constexpr Known kKnown[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Known& known : kKnown) {
    check(philox(known.counter, uint64_t{known.key[1]} << 32 | known.key[0]) == known.answer, "philox is not philox");
  }
}

void test_streams() {
  // A stream is a pure function of its key; any change of the key is another stream.
  const RandomKey key{.seed = 9, .tree = 3, .count = 4};
  const auto first = [](RandomKey k, Purpose purpose, uint32_t lane) { return Stream(k, purpose, lane).next_bits(); };
  const uint64_t bits = first(key, Purpose::kMove, 5);
  check(bits == first(key, Purpose::kMove, 5), "a stream does not repeat");
  check(bits != first({10, 3, 4}, Purpose::kMove, 5) && bits != first({9, 4, 4}, Purpose::kMove, 5) &&
            bits != first({9, 3, 5}, Purpose::kMove, 5) && bits != first(key, Purpose::kRollout, 5) &&
            bits != first(key, Purpose::kMove, 6),
        "two streams are the same");

  // Means and variances, within five standard errors of 200,000 draws.
  constexpr int32_t kDraws = 200000;
  const auto check_moments = [](double mean, double variance, double fourth, const auto& draw) {
    double total = 0.0, squares = 0.0;
    for (int32_t i = 0; i < kDraws; ++i) {
      const double x = draw();
      total += x;
      squares += (x - mean) * (x - mean);
    }
    check(std::fabs(total / kDraws - mean) < 5.0 * std::sqrt(variance / kDraws), "the mean of a distribution is off");
    check(std::fabs(squares / kDraws - variance) < 5.0 * std::sqrt((fourth - variance * variance) / kDraws),
          "the variance of a distribution is off");
  };
  Stream stream(key, Purpose::kMove, 0);
  check_moments(0.5, 1.0 / 12.0, 1.0 / 80.0, [&] {
    const double x = stream.next_uniform();
    check(x > 0.0 && x < 1.0, "a uniform number is not in (0, 1)");
    return x;
  });
  check_moments(0.0, 1.0, 3.0, [&] { return stream.next_normal(); });
  for (const double alpha : {0.3, 1.0, 2.5, 50.0}) {
    // Fourth central moment of Gamma(alpha, 1): 3 alpha^2 + 6 alpha.
    check_moments(alpha, alpha, 3.0 * alpha * alpha + 6.0 * alpha,
                  [&] { return std::exp(stream.next_log_gamma(alpha)); });
  }
}

void test_root_noise() {
  for (const size_t count : {1, 2, 7, 361}) {
    for (const double alpha : {1e-4, 0.03, 1.0, 100.0}) {
      std::vector<uint16_t> actions;
      for (size_t i = 0; i < count; ++i) actions.push_back(static_cast<uint16_t>(2 * i));
      const float even = 1.0f / static_cast<float>(count);
      for (const float fraction : {0.0f, 0.25f, 1.0f}) {
        std::vector<float> priors(count, even);
        mix_root_noise({1, 2, 3}, alpha, fraction, actions, priors);
        float total = 0.0f;
        for (const float prior : priors) {
          check(prior >= (1.0f - fraction) * even && prior <= 1.0f, "a prior with noise is out of range");
          if (fraction == 0.0f) check(prior == even, "no noise changes a prior");
          total += prior;
        }
        check(std::fabs(total - 1.0f) < 1e-4f, "priors with noise do not sum to 1");
      }
    }
  }
  // An action's noise before the division depends on the action alone, so two of three keep their proportion.
  std::vector<float> three(3, 0.0f), two(2, 0.0f);
  mix_root_noise({1, 2, 3}, 1.0, 1.0f, std::vector<uint16_t>{4, 5, 6}, three);
  mix_root_noise({1, 2, 3}, 1.0, 1.0f, std::vector<uint16_t>{4, 6}, two);
  check(std::fabs(three[0] / three[2] - two[0] / two[1]) < 1e-5f * two[0] / two[1], "noise is not the action's own");
}

}  // namespace

int main() {
  test_round_small();
  test_exp32();
  test_exp64_and_log64();
  test_philox();
  test_streams();
  test_root_noise();
  test_softmax();
}
