// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "simulate/coarse_play.hpp"
#include "simulate/layout.hpp"
#include "simulate/noise.hpp"
#include "simulate/noise_delay.hpp"

namespace isoscale::simulate {
namespace {

CoarseSet whole_mesh(const program::ProgramSet& set, const Classes& classes,
                     const Costs& class_costs) {
  std::vector<std::uint32_t> table_of_rank;
  for (const std::uint32_t class_rank : classes.class_of_rank) {
    table_of_rank.push_back(class_costs.table_of_rank[class_rank]);
  }
  return coarsen(set.mesh, classes.outline.outlines, set.program_of_rank, class_costs.tables,
                 table_of_rank);
}

/// E[largest of `large`] / E[largest of `small`].
double growth(double small, double large) {
  return small > 1 ? largest_normal(large).mean / largest_normal(small).mean : 1;
}

double longest(const std::vector<CoarseStep>& step) {
  double time = 0;
  for (const CoarseStep& rank : step) time = std::max(time, rank.end - rank.begin);
  return time;
}

/// The class of what stands at `place` of a replica; along axes that classes have not there is one.
std::size_t class_at(const mesh::Shape& classes, mesh::Coordinates place) {
  const std::array along{&place.tp, &place.cp, &place.ep, &place.dp, &place.pp};
  for (const mesh::Axis axis : mesh::all_axes) {
    int& coordinate = *along[static_cast<std::size_t>(axis)];
    coordinate = std::min(coordinate, classes[axis] - 1);
  }
  return at(mesh::rank_at(classes, place));
}

/// The rank at the tight coordinates of `place` and else those of `rank`, which are 0 along these.
int whole_rank(const mesh::Shape& mesh, int rank, const mesh::Coordinates& place,
               mesh::AxisSet tight) {
  for (const mesh::Axis axis : mesh::all_axes) {
    if (tight.contains(axis)) rank += place[axis] * mesh::stride(mesh, axis);
  }
  return rank;
}

}  // namespace

EachRankResult play_each_rank(const program::ProgramSet& set, program::Section,
                              const Classes& classes, const Costs& class_costs, const Noise& noise,
                              const Layout& layout, EachRankOptions options) {
  if (options.steps < 1) throw std::invalid_argument("no steps to play");
  if (layout.node_of_rank.size() != at(set.mesh.size())) {
    throw std::invalid_argument("a layout has not a node for each rank of the mesh");
  }
  const DeviationDraws draws{noise, options.seed};
  const auto plays = play_coarse(
      whole_mesh(set, classes, class_costs),
      {.plays = 1 + options.steps,
       .factor = [&](int rank,
                     int play) { return 1 + draws(rank, layout.node_of_rank[at(rank)], play); },
       .op_noise = noise.op,
       .seed = options.seed});
  const double noiseless = play_classes(classes, class_costs, {}, Record::steps).seconds;
  EachRankResult result;
  double wait = 0;
  for (std::size_t play = 1; play < plays.size(); ++play) {
    double longest = 0;
    for (const CoarseStep& rank : plays[play]) {
      longest = std::max(longest, rank.end - rank.begin);
      wait += (rank.end - rank.begin - rank.extra) * 1e-9 - noiseless;
    }
    result.step_seconds.push_back(longest * 1e-9);
  }
  result.mean_wait = wait / (static_cast<double>(options.steps) * set.mesh.size());
  return result;
}

OpDelay op_delay(const program::ProgramSet& set, const Classes& classes, const Costs& costs,
                 const Noise& noise, const Layout& layout, mesh::AxisSet tight) {
  constexpr int most_ranks = 256;
  mesh::Shape shape = classes.outline.mesh;
  const std::array extents{&shape.tp, &shape.cp, &shape.ep, &shape.dp, &shape.pp};
  for (const mesh::Axis axis : mesh::all_axes) {
    if (!tight.contains(axis)) continue;
    const int room = std::max(1, most_ranks / shape.size());
    *extents[static_cast<std::size_t>(axis)] = std::min(set.mesh[axis], room);
  }
  std::vector<std::uint32_t> outline_of_rank, table_of_rank;
  std::vector<int> node_of_rank;
  for (int rank = 0; rank < shape.size(); ++rank) {
    const mesh::Coordinates place = mesh::coordinates(shape, rank);
    const std::size_t c = class_at(classes.outline.mesh, place);
    outline_of_rank.push_back(classes.outline.outline_of_rank[c]);
    table_of_rank.push_back(costs.table_of_rank[c]);
    node_of_rank.push_back(
        layout.node_of_rank[at(whole_rank(set.mesh, classes.rank[c], place, tight))]);
  }
  const CoarseSet replica =
      coarsen(shape, classes.outline.outlines, outline_of_rank, costs.tables, table_of_rank);
  const DeviationDraws draws{noise, 1};
  CoarseOptions options{.plays = std::clamp(4000 / shape.size(), 16, 1000)};
  options.factor = [&](int rank, int play) {
    return 1 + draws(rank, node_of_rank[at(rank)], play);
  };
  const auto without = play_coarse(replica, options);
  options.op_noise = noise.op;
  const auto with = play_coarse(replica, options);
  const double scale = growth(mesh::group_size(shape, tight), mesh::group_size(set.mesh, tight));
  double mean = 0, squares = 0;
  const double counted = options.plays - 1;
  for (std::size_t play = 1; play < with.size(); ++play) {
    const double more = longest(with[play]) - longest(without[play]);
    mean += more / counted;
    squares += more * more / counted;
  }
  return {.mean = mean * scale, .deviation = std::sqrt(std::max(0.0, squares - mean * mean))};
}

}  // namespace isoscale::simulate
