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
  Sizes sizes;
  std::vector<gemm::ShapeGroup> shapes;
  std::uint32_t largest = 0;
  std::uint64_t rotate = 0;
  std::string axis;
};

Values values_of(const Request& request) {
  return typed_options<Values>(option_table(), request.options);
}

/// The sessions of a calibration, in the order in which they run. A single rank has only the first
/// session, since it has no other rank to communicate with.
enum class Part : std::uint8_t { multiplications, sums, collectives };

/// Returns the options for one session of the collectives benchmark, with operations that training
/// workloads use. Sums are measured in place, as gradients are summed, because libraries may use
/// different algorithms in place and out of place. The other operations are measured out of place,
/// as workloads use them.
collectives::Values collectives_of(const Request& request, Part which) {
  using enum collectives::Operation;
  const bool sums = which == Part::sums;
  const Values options = values_of(request);
  collectives::Values part = collectives::values_of({});
  part.op = sums ? std::vector{all_reduce} : std::vector{reduce_scatter, all_gather, sendrecv};
  part.sizes = options.sizes;
  part.in_place = sums ? collectives::Place::in_place : collectives::Place::out_of_place;
  part.rotate = std::uint64_t{16} << 20U;  // bytes
  part.axis = options.axis;
  return part;
}

int batches(const Request& request) {
  if (request.mesh.size() == 1) return 1;
  // This throws for meshes that collectives cannot use.
  static_cast<void>(collectives::setting_of(request, collectives_of(request, Part::sums)));
  return 3;
}

gemm::Values multiplications_of(const Request& request) {
  const Values options = values_of(request);
  gemm::Values part = gemm::values_of({});
  part.shapes = options.shapes;
  part.largest = options.largest;
  part.cache = gemm::Cache::cold;
  part.rotate = options.rotate;
  return part;
}

Bench build(const Request& request, int batch) {
  const auto part = static_cast<Part>(batch);
  return part == Part::multiplications ? gemm::build(request, multiplications_of(request))
                                       : collectives::build(request, collectives_of(request, part));
}

std::vector<Expectation> expect(const Request& request, int batch, std::size_t index, int rank) {
  const auto part = static_cast<Part>(batch);
  if (part == Part::multiplications) return {};
  return collectives::expect(request, collectives_of(request, part), index, rank);
}

}  // namespace

std::span<const OptionSpec> option_table() {
  static const std::array table{
      option::parsed<&Values::sizes, parse_sizes>(
          "sizes", "8..16MiB*4",
          "message sizes that curves are fitted to, as in workload collectives", "8..256MiB*4"),
      option::parsed<&Values::shapes, gemm::parse_shapes>(
          "shapes", "powers,1024x1024x256,256x256x1024,2048x2048x512",
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
  return {.batches = batches,
          .build = build,
          .expect = expect,
          .uses_model = [](const Request& request) {
            return gemm::names_model(values_of(request).shapes);
          }};
}

}  // namespace isoscale::workloads::calibrate
