// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/calibrate/calibrate.hpp"

#include <array>

#include "workloads/collectives/collectives.hpp"
#include "workloads/gemm/gemm.hpp"

namespace isoscale::workloads::calibrate {
namespace {

/// Holds the parsed options, which option_table() describes.
struct Values {
  std::string sizes, shapes, largest, rotate, axis;
};

Values values_of(const Request& request) {
  return typed_options<Values>(option_table(), request.options);
}

/// The operations with which training workloads communicate. Sums are measured in place, as
/// gradients are summed, because libraries may use different algorithms in place and out of place.
/// The other operations are measured out of place, as workloads use them.
constexpr std::string_view in_place = "all_reduce";
constexpr std::string_view out_of_place = "reduce_scatter,all_gather,sendrecv";

/// The sessions, in this order. A single rank has only the first session, since it has no other
/// rank to communicate with.
enum class Part : std::uint8_t { multiplications, sums, collectives };

Request collectives_of(const Request& request, Part which) {
  const bool sums = which == Part::sums;
  const Values options = values_of(request);
  Request part = request;
  part.options = {{"op", std::string{sums ? in_place : out_of_place}},
                  {"sizes", options.sizes},
                  {"in_place", sums ? "yes" : "no"},
                  {"rotate", "16MiB"}};
  if (options.axis != "world") part.options["axis"] = options.axis;
  return part;
}

int batches(const Request& request) {
  if (request.mesh.size() == 1) return 1;
  static_cast<void>(collectives::hooks().batches(collectives_of(request, Part::sums)));
  return 3;
}

Request multiplications_of(const Request& request) {
  const Values options = values_of(request);
  Request part = request;
  part.options = {{"shapes", options.shapes},
                  {"largest", options.largest},
                  {"cache", "cold"},
                  {"rotate", options.rotate}};
  return part;
}

Bench build(const Request& request, int batch) {
  const auto part = static_cast<Part>(batch);
  return part == Part::multiplications ? gemm::build(multiplications_of(request), 0)
                                       : collectives::build(collectives_of(request, part), 0);
}

std::vector<Expectation> expect(const Request& request, int batch, std::size_t index, int rank) {
  const auto part = static_cast<Part>(batch);
  if (part == Part::multiplications) return {};
  return collectives::expect(collectives_of(request, part), 0, index, rank);
}

}  // namespace

std::span<const OptionSpec> option_table() {
  static const std::array table{
      option::text<&Values::sizes>(
          "sizes", "8..16MiB*4",
          "message sizes that curves are fitted to, as in workload collectives", "8..256MiB*4"),
      option::text<&Values::shapes>("shapes", "powers,1024x1024x256,256x256x1024,2048x2048x512",
                                    "shapes to multiply, as in workload gemm",
                                    "powers,8192x8192x2048,2048x2048x8192,16384x16384x4096"),
      option::integer<&Values::largest>("largest", "2048", {128, 65536}, "largest extent of powers",
                                        "16384"),
      option::bytes<&Values::rotate>(
          "rotate", "64MiB", {},
          "memory that multiplications go through, at least, so that caches do not hold it",
          "256MiB"),
      option::choice<&Values::axis>(
          "axis", "world", {"world", "tp", "cp", "ep", "dp", "pp"},
          "ranks that communicate: all of them, or those along an axis of --mesh"),
  };
  return table;
}

BenchHooks hooks() {
  return {.batches = batches, .build = build, .expect = expect, .uses_model = gemm::uses_model};
}

}  // namespace isoscale::workloads::calibrate
