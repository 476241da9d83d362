// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/each_rank.hpp"

#include <algorithm>
#include <stdexcept>

#include "simulate/at.hpp"
#include "simulate/coarse_play.hpp"
#include "simulate/deviations.hpp"

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

}  // namespace isoscale::simulate
