// arrays.h: vectors of ours as arrays of NumPy's.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace nb = nanobind;

// A vector handed to Python as an array that owns it.
template <class T, class... Shape>
nb::ndarray<nb::numpy, T> to_array(std::vector<T> values, Shape... shape) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owned->data();
  nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(data, {static_cast<size_t>(shape)...}, owner);
}

template <class To, class From>
nb::ndarray<nb::numpy, To> copy_array(std::span<const From> values) {
  return to_array<To>(std::vector<To>(values.begin(), values.end()), values.size());
}
