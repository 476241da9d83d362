// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/tiles/tiles.hpp"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "program/builder.hpp"
#include "workloads/tiles/convolution.hpp"
#include "workloads/tiles/halo.hpp"
#include "workloads/tiles/kernels.hpp"
#include "workloads/tiles/options.hpp"

namespace isoscale::workloads::tiles {
namespace {

using program::BufferId;
using program::Phase;
using program::Role;

/// Whether halos travel on a stream of their own, beside the interior.
bool overlaps(const Request& request, const Geometry& g) {
  const bool has_messages = g.tiles_down > 1 || g.tiles_across > 1;
  return has_messages && OptionReader{option_table(), request.options}.is("overlap", "on");
}

/// Writes the program of one rank.
class Writer {
 public:
  Writer(const Request& request, const mesh::Coordinates& at);
  [[nodiscard]] program::RankProgram write();

 private:
  void fill_images(std::uint64_t seed);
  void forward(int layer);
  void backward(int layer);
  void observe(std::string name, BufferId tile);
  [[nodiscard]] BufferId input_of(int layer) const {
    return tiles_[static_cast<std::size_t>(layer)];
  }
  [[nodiscard]] BufferId output_of(int layer) const { return input_of(layer + 1); }

  const Request& request_;
  Geometry g_;
  stack::Types types_;
  program::Builder builder_;
  Kernels kernels_;
  bool overlaps_;
  Halo halo_;
  Convolution convolution_;
  /// The input of each layer, and the last one's output, each with its halo. They live on from step
  /// to step, so that zeros outside a fixed boundary are written once. Backward overwrites a
  /// layer's input, once its kernel's gradient is there, with that input's gradient.
  std::vector<BufferId> tiles_;
};

Writer::Writer(const Request& request, const mesh::Coordinates& at)
    : request_(request),
      g_(request, at),
      types_(stack::types_of(request.precision)),
      builder_(request.mesh),
      kernels_(builder_, g_, request),
      overlaps_(overlaps(request, g_)),
      halo_(builder_, g_, types_.compute,
            overlaps_ ? builder_.stream("halo") : program::StreamId{0}),
      convolution_(builder_, g_, types_) {
  fill_images(request.seed);
}

void Writer::fill_images(std::uint64_t seed) {
  builder_.at({.phase = Phase::setup});
  for (int i = 0; i <= g_.layers; ++i) {
    const BufferId tile = builder_.allocate({.dtype = types_.compute,
                                             .role = i == 0 ? Role::input : Role::activation,
                                             .microbatch = i == 0 ? -1 : 0,
                                             .count = g_.padded()});
    builder_.emit(0, program::Fill{.dst = builder_.whole(tile),
                                   .shard = {.extents = {1, 1, g_.padded()}, .local = {0, 0, 1}},
                                   .source = program::FillSource::constant,
                                   .value = 0});
    tiles_.push_back(tile);
  }
  builder_.emit(
      0, stack::random_fill(
             {.buffer = tiles_.front(), .offset = g_.place(g_.halo, g_.halo), .count = g_.span()},
             g_.shard(), stack::fill_key(seed, "input"), 1));
}

program::RankProgram Writer::write() {
  builder_.begin(program::Section::step);
  for (int layer = 0; layer < g_.layers; ++layer) forward(layer);
  for (int layer = g_.layers; layer-- > 0;) backward(layer);
  kernels_.finish();
  if (request_.keep == Keep::observables) {
    observe("output", tiles_.back());
    for (int layer = 1; layer < g_.layers; ++layer) {
      observe(fmt::format("layer{}.input.gradient", layer), input_of(layer));
    }
    kernels_.observe();
  }
  return builder_.finish();
}

void Writer::forward(int layer) {
  builder_.at({.phase = Phase::forward, .layer = layer});
  const BufferId in = input_of(layer), out = output_of(layer);
  const program::Slice kernel = kernels_.weight(layer);
  // The output is its own gradient, from which the kernel's is computed: loss = 1/2 |Y|^2.
  if (layer + 1 == g_.layers) convolution_.clear_columns(out);
  const Region interior = g_.interior();
  halo_.begin(in, Columns::early);
  if (!overlaps_ || interior.empty()) {
    halo_.end(in, Columns::early);
    return convolution_.forward(g_.all(), in, kernel, out);
  }
  convolution_.forward(interior, in, kernel, out);
  halo_.end(in, Columns::early);
  for (const Region& band : convolution_.around(interior)) {
    convolution_.forward(band, in, kernel, out);
  }
}

void Writer::backward(int layer) {
  builder_.at({.phase = Phase::backward, .layer = layer});
  const BufferId in = input_of(layer), d_out = output_of(layer);
  // Nothing needs the gradient of the images.
  const bool goes_on = layer > 0;
  // The halo travels under the kernel's gradient, which needs none.
  if (goes_on) halo_.begin(d_out, Columns::late);
  convolution_.kernel_gradient(in, d_out, kernels_.gradient(layer));
  kernels_.done(layer);
  if (!goes_on) return;
  halo_.end(d_out, Columns::late);
  convolution_.clear_columns(in);
  convolution_.backward(d_out, kernels_.weight(layer), in);
}

void Writer::observe(std::string name, BufferId tile) {
  builder_.observe(std::move(name),
                   {.buffer = tile, .offset = g_.place(g_.halo, g_.halo), .count = g_.span()},
                   g_.shard());
}

}  // namespace

program::ProgramSet build(const Request& request) {
  program::ProgramSet set{.mesh = request.mesh, .programs = {}, .program_of_rank = {}};
  std::map<int, std::uint32_t> known;  // by the rank that the program is written for
  set.program_of_rank.reserve(static_cast<std::size_t>(request.mesh.size()));
  for (int rank = 0; rank < request.mesh.size(); ++rank) {
    const mesh::Coordinates at = tiles::program_at(request, mesh::coordinates(request.mesh, rank));
    const auto [entry, is_new] = known.try_emplace(mesh::rank_at(request.mesh, at),
                                                   static_cast<std::uint32_t>(set.programs.size()));
    if (is_new) set.programs.push_back(Writer{request, at}.write());
    set.program_of_rank.push_back(entry->second);
  }
  return set;
}

}  // namespace isoscale::workloads::tiles
