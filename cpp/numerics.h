// numerics.h: exp, log and softmax with one meaning in every language.
//
// The equality of engines hangs on the last bit of a prior, so nothing here calls a math library: only +, -, *, / and
// sqrt, which IEEE 754 rounds the same way everywhere, compiled without fused multiply-add. `windrow.numerics` is the
// same text in NumPy.
//
// The sum of a softmax is taken over integers held in float64, so it is exact and its order does not matter: a CPU
// that adds legal actions one by one and a GPU that adds all lanes in a tree get the same bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "lanes.h"

namespace windrow {

// Rounds to the nearest integer, ties to even, for |x| < 2^22 (float) and 2^51 (double): adding 1.5 * 2^23 (2^52)
// leaves no room for a fraction. One instruction sequence for scalars and lanes on every instruction set.
template <class Floats>
inline Floats round_small(Floats x) {
  return (x + 12582912.0f) - 12582912.0f;
}
inline double round_small(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }
inline Double4 round_small(Double4 x) { return (x + 6755399441055744.0) - 6755399441055744.0; }

// 2^n for whole n in [-126, 127].
inline float power_of_two(float n) {
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return power;
}
inline Float4 power_of_two(Float4 n) {
  const Int4 bits = (convert<Int4>(n) + 127) << 23;
  return load<Float4>(&bits);
}

// Below this, a softmax weight rounds to zero anyway (see kWeightScale).
inline constexpr float kExpFloor = -32.0f;

// e^x in float32 for x in [kExpFloor, 0]. ln 2 is split so that n * kLn2High is exact; on the rest, at most ln(2)/2
// away from 0, the Taylor series to x^7 is closer than half a unit in the last place; with rounding, e^x is within 1.5.
template <class Floats>
inline Floats exp32(Floats x) {
  constexpr float kLog2E = 1.44269504088896341f, kLn2High = 0.693359375f, kLn2Low = -2.12194440054690583e-4f;
  const Floats n = round_small(x * kLog2E);
  const Floats r = (x - n * kLn2High) - n * kLn2Low;
  Floats sum = r * (1.0f / 5040.0f) + 1.0f / 720.0f;
  sum = sum * r + 1.0f / 120.0f;
  sum = sum * r + 1.0f / 24.0f;
  sum = sum * r + 1.0f / 6.0f;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  return sum * power_of_two(n);
}

// Weights are rounded to multiples of 2^-36 of the largest: 2^17 of them still add up exactly in a float64.
inline constexpr double kWeightScale = 68719476736.0;

// What stands behind the last of some logits, up to a whole group of lanes: its weight is zero.
inline constexpr float kPadding = -std::numeric_limits<float>::infinity();

// The law's softmax over logits, in place. They are finite, at least one, and padded with kPadding to a multiple of
// kLanes; the padding becomes zero.
inline void softmax(float* values, int32_t padded_count) {
  Float4 largest_lanes = load<Float4>(values);
  for (int32_t i = kLanes; i < padded_count; i += kLanes) {
    const Float4 logits = load<Float4>(values + i);
    largest_lanes = logits > largest_lanes ? logits : largest_lanes;
  }
  const float largest =
      std::max(std::max(largest_lanes[0], largest_lanes[1]), std::max(largest_lanes[2], largest_lanes[3]));
  Double4 totals = {};
  for (int32_t i = 0; i < padded_count; i += kLanes) {
    const Float4 shifted = load<Float4>(values + i) - largest;
    const Float4 floor = Float4{} + kExpFloor;
    const Float4 powers = exp32(shifted < floor ? floor : shifted);
    const Double4 weights = round_small(convert<Double4>(powers) * kWeightScale);
    totals += weights;
    store(values + i, convert<Float4>(weights));
  }
  const float sum = static_cast<float>((totals[0] + totals[1]) + (totals[2] + totals[3]));
  for (int32_t i = 0; i < padded_count; i += kLanes) store(values + i, load<Float4>(values + i) / sum);
}

// ln x in float64, x > 0: the series of artanh on a mantissa within sqrt(2) of 1.
inline double log64(double x) {
  constexpr double kLn2 = 0.693147180559945309, kSqrtHalf = 0.707106781186547524;
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < kSqrtHalf) {
    mantissa *= 2.0;
    exponent -= 1;
  }
  const double f = (mantissa - 1.0) / (mantissa + 1.0), square = f * f;
  double sum = 0.0;
  for (int32_t odd = 21; odd >= 1; odd -= 2) sum = sum * square + 1.0 / odd;
  return exponent * kLn2 + 2.0 * f * sum;
}

// e^x in float64 for x <= 0; 0 where the result would be smaller than any use for it.
inline double exp64(double x) {
  constexpr double kLog2E = 1.44269504088896341, kLn2High = 0.693147180369123816490, kLn2Low = 1.90821492927058770e-10;
  if (x < -700.0) return 0.0;
  const double n = round_small(x * kLog2E);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double sum = 1.0;
  for (int32_t k = 14; k >= 1; --k) sum = sum * r / k + 1.0;
  return std::ldexp(sum, static_cast<int>(n));
}

// Raises the positive ones of some priors to the power of 1/temperature and normalizes them.
inline void flatten(std::span<float> priors, float temperature) {
  const double highest = log64(static_cast<double>(*std::max_element(priors.begin(), priors.end())));
  std::vector<double> powers;
  powers.reserve(priors.size());
  double total = 0.0;
  for (const float prior : priors) {
    const double exponent = (log64(static_cast<double>(prior)) - highest) / static_cast<double>(temperature);
    powers.push_back(prior > 0.0f ? exp64(exponent) : 0.0);
    total += powers.back();
  }
  for (size_t i = 0; i < priors.size(); ++i) priors[i] = static_cast<float>(powers[i] / total);
}

}  // namespace windrow
