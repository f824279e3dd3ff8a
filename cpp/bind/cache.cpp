// cache.cpp: windrow._core.PredictionCache. The search uses it directly; Python may ask for rows of its own.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bind.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace windrow;

namespace {

using Keys = nb::ndarray<const uint64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstRows = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstValues = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void check_rows(size_t num_keys, size_t num_rows, size_t num_values) {
  if (num_keys != num_rows || num_keys != num_values) throw std::invalid_argument("as many rows as keys are needed");
}

}  // namespace

void bind_cache(nb::module_& m) {
  nb::class_<PredictionCache>(m, "PredictionCache",
                              "What the evaluator said about positions. See cpp/prediction_cache.h.")
      .def(nb::init<size_t, bool, int32_t, bool>(), "max_bytes"_a, nb::kw_only(), "half_precision"_a = false,
           "place_bits"_a = 64, "canonical"_a = false)
      .def_prop_ro("max_bytes", &PredictionCache::max_bytes)
      .def("clear", &PredictionCache::clear, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "counters",
          [](const PredictionCache& self) {
            const CacheCounters counters = self.counters();
            nb::dict result;
            result["hits"] = counters.hits;
            result["misses"] = counters.misses;
            result["insertions"] = counters.insertions;
            result["evictions"] = counters.evictions;
            result["second_chances"] = counters.second_chances;
            result["mistaken"] = counters.mistaken;
            result["entries"] = counters.entries;
            result["bytes"] = counters.bytes;
            return result;
          },
          nb::sig("def counters(self) -> dict[str, int]"))
      .def(
          "find_rows",
          [](PredictionCache& self, const Keys& keys, uint64_t version, const Rows& rows, const Values& values,
             const Flags& found) {
            check_rows(keys.shape(0), rows.shape(0), values.shape(0));
            check_rows(keys.shape(0), found.shape(0), found.shape(0));
            const size_t count = keys.shape(0), width = rows.shape(1);
            const nb::gil_scoped_release no_gil;
            for (size_t i = 0; i < count; ++i) {
              found.data()[i] = self.find(make_key(keys.data() + 2 * i, version), static_cast<int32_t>(width),
                                          rows.data() + i * width, values.data() + i);
            }
          },
          "keys"_a, "version"_a, "rows"_a, "values"_a, "found"_a,
          "Fills in the rows [K, n] and values [K] of the keys [K, 2] it knows and says in `found` [K] which.")
      .def(
          "insert_rows",
          [](PredictionCache& self, const Keys& keys, uint64_t version, const ConstRows& rows,
             const ConstValues& values) {
            check_rows(keys.shape(0), rows.shape(0), values.shape(0));
            const size_t count = keys.shape(0), width = rows.shape(1);
            const nb::gil_scoped_release no_gil;
            for (size_t i = 0; i < count; ++i) {
              self.insert(make_key(keys.data() + 2 * i, version), static_cast<int32_t>(width), rows.data() + i * width,
                          values.data()[i]);
            }
          },
          "keys"_a, "version"_a, "rows"_a, "values"_a, "Remembers rows [K, n] and values [K] under keys [K, 2].");
}
