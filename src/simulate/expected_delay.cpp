// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "simulate/at.hpp"
#include "simulate/coarse_play.hpp"
#include "simulate/delay_kinds.hpp"
#include "simulate/deviations.hpp"
#include "simulate/each_rank.hpp"
#include "simulate/normal.hpp"
#include "simulate/op_delay.hpp"
#include "simulate/synchrony.hpp"

namespace isoscale::simulate {
namespace {

mesh::AxisSet without(mesh::AxisSet axes, mesh::AxisSet other) {
  return mesh::AxisSet::from_bits(static_cast<std::uint8_t>(axes.bits() & ~other.bits()));
}

class Delay {
 public:
  Delay(const program::ProgramSet& set, const Classes& classes, const Costs& costs,
        const Noise& noise, const Layout& layout)
      : set_(set), classes_(classes), costs_(costs), noise_(noise), layout_(layout) {
    const program::OutlineSet& outline = classes.outline;
    coarse_ = coarsen(outline.mesh, outline.outlines, outline.outline_of_rank, costs.tables,
                      costs.table_of_rank);
    noiseless_ = settle(coarse_).period;
    const mesh::AxisSet varying = mesh::varying(set.mesh, mesh::every_axis);
    const mesh::AxisSet gone = without(varying, mesh::varying(outline.mesh, mesh::every_axis));
    const mesh::AxisSet tight = tight_axes(set.mesh, outline.outlines, costs.tables,
                                           outline.outline_of_rank, costs.table_of_rank);
    loose_ = without(gone, tight);
    tight_ = without(gone, loose_);
  }

  double nanoseconds() {
    const OpDelay op =
        noise_.op > 0 ? op_delay(set_, classes_, costs_, noise_, layout_, tight_) : OpDelay{};
    const OwnDeviation own{noise_, 0};
    Kinds kinds = kinds_of(classes_, costs_, layout_);
    const Largest typical = typical_deviation(own);
    const double passing = respond(kinds, typical, own);
    return mean_of_largest(kinds, own, std::hypot(op.deviation, passing)) + op.mean - noiseless_;
  }

 private:
  /// Mean and variance of the largest deviation among ranks that are tight with each other.
  Largest typical_deviation(const OwnDeviation& own) const {
    std::map<int, double> on_node;
    for (const int rank : mesh::group_members(set_.mesh, 0, tight_)) {
      ++on_node[layout_.node_of_rank[at(rank)]];
    }
    std::map<double, double> nodes;  // by members
    for (const auto& [node, members] : on_node) ++nodes[members];
    const auto below = [&](double x) {
      double sum = 0;
      for (const auto& [members, count] : nodes) {
        sum += count * log_node_below(noise_.node, [&](double node) {
                 return members * own.log_below(x - node);
               });
      }
      return std::exp(sum);
    };
    return moments_of(below, lowest(own), highest(own));
  }

  /// Nodes deviate by some deviations more than ranks by themselves do.
  [[nodiscard]] double lowest(const OwnDeviation& own) const { return own.low() - 7 * noise_.node; }
  [[nodiscard]] double highest(const OwnDeviation& own) const {
    return own.high() + 7 * noise_.node;
  }

  /// Mean and variance of a distribution between two bounds, by parts.
  template <class Below>
  static Largest moments_of(const Below& below, double low, double high) {
    constexpr int parts = 800;
    const double width = (high - low) / parts;
    double mean = high, square = high * high;
    for (int i = 0; i < parts; ++i) {
      const double x = low + (i + 0.5) * width;
      const double chance = below(x);
      mean -= chance * width;
      square -= 2 * x * chance * width;
    }
    return {.mean = mean, .variance = std::max(0.0, square - mean * mean)};
  }

  /// Slows one rank of each kind, once and twice as far as ranks deviate, for how a step responds.
  /// Returns the standard deviation of a step, in nanoseconds, by ranks that are not the slowest
  /// but passed on the way: of a pipeline, the stages that a microbatch goes through before and
  /// after.
  double respond(Kinds& kinds, const Largest& typical, const OwnDeviation& own) const {
    constexpr std::size_t most_kinds = 64;
    const double usual = std::max(0.0, 1 + typical.mean);
    std::vector<double> factor(classes_.rank.size(), usual);
    const double range = std::max(highest(own) - typical.mean, 1e-6);
    const double at_usual = settle(coarse_, factor).period;
    const std::size_t every = 1 + (kinds.all.size() - 1) / most_kinds;
    double most = 0, slow_at = 0;
    for (std::size_t k = 0; k < kinds.all.size(); k += every) {
      Kind& kind = kinds.all[k];
      double& slow = factor[kind.classes.front()];
      slow = usual + range;
      kind.from = typical.mean + range;
      kind.at = settle(coarse_, factor).period;
      slow = usual + 2 * range;
      kind.slope = (settle(coarse_, factor).period - kind.at) / range;
      slow = usual;
      most = std::max(most, kind.slope);
      slow_at = std::max(slow_at, kind.at);
    }
    // Too many to look at each: those between are like the one before.
    for (std::size_t k = 0; k < kinds.all.size(); ++k) {
      const Kind& seen = kinds.all[k - k % every];
      kinds.all[k].from = seen.from;
      kinds.all[k].at = seen.at;
      kinds.all[k].slope = seen.slope < most / 2 ? 0 : seen.slope;  // never waited for
    }
    if (factor.size() == 1) return 0;
    const std::vector<double> all_slow(factor.size(), usual + range);
    const double all = (settle(coarse_, all_slow).period - at_usual) / range;
    const double passed = std::max(0.0, all - most);
    return passed * std::sqrt(typical.variance / static_cast<double>(factor.size() - 1));
  }

  /// Replicas that share nodes deviate together.
  [[nodiscard]] double replicas_on_node() const {
    std::set<std::pair<int, int>> pairs;
    std::set<int> nodes;
    for (int rank = 0; rank < set_.mesh.size(); ++rank) {
      const int node = layout_.node_of_rank[at(rank)];
      nodes.insert(node);
      pairs.insert({node, mesh::group_index(set_.mesh, rank, loose_)});
    }
    return static_cast<double>(pairs.size()) / static_cast<double>(nodes.size());
  }

  /// Of the replicas' steps, in nanoseconds. `spread` is a further standard deviation of each.
  double mean_of_largest(const Kinds& kinds, const OwnDeviation& own, double spread) const {
    const double replicas = mesh::group_size(set_.mesh, loose_);
    const double together = replicas_on_node(), blocks = replicas / together;
    double low = noiseless_, high = 0;
    for (const Kind& kind : kinds.all) {
      if (kind.slope <= 0) continue;
      low = std::min(low, kind.at + kind.slope * (lowest(own) - kind.from));
      high = std::max(high, kind.at + kind.slope * (highest(own) - kind.from));
    }
    if (high == 0) return noiseless_;
    // Something to divide by where ranks deviate by nothing but their ops.
    low -= 1e-6 * noiseless_;
    high += 1e-6 * noiseless_;
    const auto block_below = [&](double time) { return log_all_below(kinds, own, time) / blocks; };
    if (spread == 0) {
      const auto below = [&](double time) { return std::exp(log_all_below(kinds, own, time)); };
      return moments_of(below, low, high).mean;
    }
    const std::vector<double> chance = chances(block_below, low, high);
    const Largest further = largest_normal(together);
    const double width = spread * std::sqrt(further.variance), reach = 6 * width;
    const auto below = [&](double time) {
      const double block = smoothed(chance, low, high, time - spread * further.mean, width);
      return std::pow(block, blocks);
    };
    return moments_of(below, low - reach, high + spread * further.mean + reach).mean;
  }

  /// log P(no rank of the mesh makes a step longer than `time`).
  double log_all_below(const Kinds& kinds, const OwnDeviation& own, double time) const {
    double sum = 0;
    for (const LikeNodes& like : kinds.nodes) {
      sum += like.nodes * log_node_below(noise_.node, [&](double node) {
               double ranks = 0;
               for (std::size_t k = 0; k < kinds.all.size(); ++k) {
                 const Kind& kind = kinds.all[k];
                 if (like.ranks[k] == 0 || kind.slope <= 0) continue;
                 const double deviation = kind.from + (time - kind.at) / kind.slope;
                 ranks += like.ranks[k] * own.log_below(deviation - node);
               }
               return ranks;
             });
    }
    return sum;
  }

  /// exp(log_below) at equal distances from `low` to `high`.
  template <class LogBelow>
  static std::vector<double> chances(const LogBelow& log_below, double low, double high) {
    constexpr int parts = 800;
    std::vector<double> chance;
    for (int i = 0; i <= parts; ++i) {
      chance.push_back(std::exp(log_below(low + (high - low) * i / parts)));
    }
    return chance;
  }

  /// The chance at x after a normal deviation of standard deviation `width` is added.
  static double smoothed(const std::vector<double>& chance, double low, double high, double x,
                         double width) {
    constexpr int parts = 48;
    constexpr double range = 6, part = 2 * range / parts;
    double sum = 0, weight = 0;
    for (int i = 0; i < parts; ++i) {
      const double z = -range + (i + 0.5) * part;
      const double density = std::exp(-z * z / 2);
      weight += density;
      const double place =
          (x - width * z - low) / (high - low) * static_cast<double>(chance.size() - 1);
      if (place < 0) continue;
      const auto before = static_cast<std::size_t>(place);
      if (before + 1 >= chance.size()) {
        sum += density;
        continue;
      }
      const double share = place - static_cast<double>(before);
      sum += density * (chance[before] + share * (chance[before + 1] - chance[before]));
    }
    return sum / weight;
  }

  const program::ProgramSet& set_;
  const Classes& classes_;
  const Costs& costs_;
  const Noise& noise_;
  const Layout& layout_;
  CoarseSet coarse_;
  double noiseless_ = 0;
  mesh::AxisSet tight_, loose_;  ///< of the axes that classes have not
};

}  // namespace

double expected_delay(const program::ProgramSet& set, const Classes& classes,
                      const Costs& class_costs, const ClassStep& step, const Noise& noise,
                      const Layout& layout) {
  if (!noise.any()) return 0;
  const Costs& costs = step.costs.tables.empty() ? class_costs : step.costs;
  return Delay{set, classes, costs, noise, layout}.nanoseconds() * 1e-9;
}

}  // namespace isoscale::simulate
