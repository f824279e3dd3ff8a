// lanes.h: four numbers at a time.
//
// The compilers' own vector types (GCC and Clang have the same), used where a loop over edges must be fast and the
// compiler does not see it by itself. Lanes are computed exactly like scalars, so results do not depend on them.
#pragma once

#include <cstdint>
#include <cstring>

namespace windrow {

inline constexpr int32_t kLanes = 4;
using Float4 = float __attribute__((vector_size(16)));
using Int4 = int32_t __attribute__((vector_size(16)));
using Short4 = uint16_t __attribute__((vector_size(8)));
using Double4 = double __attribute__((vector_size(32)));

template <class Vector>
inline Vector load(const void* from) {
  Vector lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}
template <class Vector>
inline void store(void* to, Vector lanes) {
  std::memcpy(to, &lanes, sizeof lanes);
}

template <class To, class From>
inline To convert(From lanes) {
  return __builtin_convertvector(lanes, To);
}

}  // namespace windrow
