// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "simulate/noise_delay.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "simulate/coarse_play.hpp"
#include "simulate/noise.hpp"

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

/// Returns the expected largest of `large` standard normal draws divided by that of `small` draws;
/// 1 if `small` is at most 1.
double growth(double small, double large) {
  return small > 1 ? largest_normal(large).mean / largest_normal(small).mean : 1;
}

double longest(const std::vector<CoarseStep>& step) {
  double time = 0;
  for (const CoarseStep& rank : step) time = std::max(time, rank.end - rank.begin);
  return time;
}

/// Returns the class of the rank at `place`, which are coordinates in the part of the mesh that is
/// played (a replica). Along an axis on which `classes` has extent 1, all coordinates belong to the
/// same class.
std::size_t class_at(const mesh::Shape& classes, mesh::Coordinates place) {
  for (const mesh::Axis axis : mesh::all_axes) {
    place[axis] = std::min(place[axis], classes[axis] - 1);
  }
  return at(mesh::rank_at(classes, place));
}

/// Returns the rank with the coordinates of `place` along the tight axes and those of `rank` along
/// all others; `rank` must be at coordinate 0 along the tight axes.
int whole_rank(const mesh::Shape& mesh, int rank, const mesh::Coordinates& place,
               mesh::AxisSet tight) {
  for (const mesh::Axis axis : mesh::all_axes) {
    if (tight.contains(axis)) rank += place[axis] * mesh::stride(mesh, axis);
  }
  return rank;
}

using Table = std::vector<units::Nanoseconds>;

/// Returns the stream whose compute ops take the most time.
program::StreamId main_stream(const program::Outline& outline, const Table& table) {
  std::array<std::int64_t, program::max_streams> compute{};
  for (std::size_t i = 0; i < outline.ops.size(); ++i) {
    if (program::computes(outline.ops[i].kind)) {
      compute[outline.ops[i].stream] += table[i].value();
    }
  }
  return static_cast<program::StreamId>(std::max_element(compute.begin(), compute.end()) -
                                        compute.begin());
}

/// Finds, for each axis, the longest stretch of computation on the main stream without a meeting
/// (communication with other ranks) along the axis, as a share of all computation. The computation
/// after the last meeting of a step and before the first of the next step is one stretch.
class Stretches {
 public:
  Stretches(const program::Outline& outline, const Table& table)
      : outline_(outline), main_(main_stream(outline, table)), meetings_(outline.streams.size()) {
    for (std::size_t i = 0; i < outline.ops.size(); ++i) {
      const program::OutlineOp& op = outline.ops[i];
      // Ops that an op of the main stream waits for come earlier in the program, so their meetings
      // are already counted.
      auto& here = meetings_[op.stream];
      here.push_back(here.empty() ? std::array<std::uint32_t, mesh::axis_count>{} : here.back());
      for (const mesh::Axis axis : mesh::all_axes) {
        if (program::communicates(op.kind) && op.axes.contains(axis)) ++here.back()[index(axis)];
      }
      if (op.stream != main_) continue;
      meet(here.back(), op.stream);
      for (const program::Wait& wait : outline.waits_of(op)) {
        meet(meetings_[wait.stream][wait.count - 1], wait.stream);
      }
      if (program::computes(op.kind)) time_ += static_cast<double>(table[i].value());
    }
  }

  [[nodiscard]] bool is_tight(mesh::Axis axis) const {
    const std::size_t a = index(axis);
    if (!met_[a] || time_ == 0) return false;
    return std::max(longest_[a], first_[a] + time_ - last_[a]) <= time_ / 2;
  }

 private:
  using Counts = std::array<std::uint32_t, mesh::axis_count>;
  static std::size_t index(mesh::Axis axis) { return static_cast<std::size_t>(axis); }

  /// Notes that the main stream is now ordered after the first `counts[axis]` meetings of `stream`
  /// along each axis.
  void meet(const Counts& counts, program::StreamId stream) {
    for (std::size_t a = 0; a < counts.size(); ++a) {
      if (counts[a] <= seen_[stream][a]) continue;
      seen_[stream][a] = counts[a];
      if (met_[a]) {
        longest_[a] = std::max(longest_[a], time_ - last_[a]);
      } else {
        first_[a] = time_;
      }
      met_[a] = true;
      last_[a] = time_;
    }
  }

  const program::Outline& outline_;
  program::StreamId main_;
  std::vector<std::vector<Counts>> meetings_;  ///< by stream and op: up to this op
  std::array<Counts, program::max_streams> seen_{};
  double time_ = 0;  ///< compute time so far
  std::array<bool, mesh::axis_count> met_{};
  std::array<double, mesh::axis_count> first_{}, last_{}, longest_{};
};

/// Classes whose ranks play the same program at the same costs.
struct Kind {
  std::vector<std::size_t> classes;
  double ranks = 0;  ///< of the whole mesh
  /// The time of a step in which one rank of the kind deviates by d and all others by their typical
  /// deviation: `at` + slope * (d - from) nanoseconds. This holds if d is so large that the other
  /// ranks wait for this one.
  double from = 0, at = 0, slope = 0;
};

/// Nodes that have the same number of ranks of each kind.
struct LikeNodes {
  std::vector<double> ranks;  ///< by kind
  double nodes = 0;
};

struct Kinds {
  std::vector<Kind> all;
  std::vector<LikeNodes> nodes;
};

Kinds kinds_of(const Classes& classes, const Costs& costs, const Layout& layout) {
  Kinds kinds;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> known;
  std::vector<std::size_t> kind_of_class;
  for (std::size_t c = 0; c < classes.rank.size(); ++c) {
    const auto [entry, is_new] =
        known.try_emplace({classes.program[c], costs.table_of_rank[c]}, kinds.all.size());
    if (is_new) kinds.all.emplace_back();
    kinds.all[entry->second].classes.push_back(c);
    kind_of_class.push_back(entry->second);
  }
  std::map<int, std::map<std::size_t, double>> ranks_on_node;
  for (std::size_t rank = 0; rank < classes.class_of_rank.size(); ++rank) {
    const std::size_t kind = kind_of_class[classes.class_of_rank[rank]];
    ++kinds.all[kind].ranks;
    ++ranks_on_node[layout.node_of_rank[rank]][kind];
  }
  std::map<std::map<std::size_t, double>, double> alike;
  for (const auto& [node, ranks] : ranks_on_node) ++alike[ranks];
  for (const auto& [ranks, nodes] : alike) {
    LikeNodes& like = kinds.nodes.emplace_back();
    like.ranks.resize(kinds.all.size());
    like.nodes = nodes;
    for (const auto& [kind, count] : ranks) like.ranks[kind] = count;
  }
  return kinds;
}

class Delay {
 public:
  Delay(const program::ProgramSet& set, const Classes& classes, const Costs& costs,
        const Noise& noise, const Layout& layout)
      : set_(set), classes_(classes), costs_(costs), noise_(noise), layout_(layout) {
    coarse_ = coarsen(classes.outline, costs);
    noiseless_ = settle(coarse_).period;
    const mesh::AxisSet varying = mesh::varying(set.mesh, mesh::every_axis);
    const mesh::AxisSet gone = varying - mesh::varying(classes.outline.mesh, mesh::every_axis);
    loose_ = gone - tight_axes(set.mesh, classes.outline, costs);
    tight_ = gone - loose_;
  }

  double nanoseconds() {
    const OpDelay op = noise_.op > 0 ? op_delay() : OpDelay{};
    const OwnDeviation own{noise_, 0};
    Kinds kinds = kinds_of(classes_, costs_, layout_);
    const Largest typical = typical_deviation(own);
    const double passing = respond(kinds, typical, own);
    return mean_of_largest(kinds, own, std::hypot(op.deviation, passing)) + op.mean - noiseless_;
  }

 private:
  /// The time that the noise of single ops adds to a step of one replica.
  struct OpDelay {
    double mean = 0, deviation = 0;  ///< nanoseconds
  };

  /// Plays one replica together with the ranks along the tight axes, once with and once without the
  /// noise of ops, and returns the difference. Both plays include the other deviations of ranks,
  /// since these hide some of the ops' noise. If a group is too large, only a part of it is played,
  /// and the mean delay is multiplied by the ratio of the expected largest draws in the whole group
  /// and in the part.
  [[nodiscard]] OpDelay op_delay() const {
    constexpr int most_ranks = 256;
    mesh::Shape shape = classes_.outline.mesh;
    for (const mesh::Axis axis : mesh::all_axes) {
      if (!tight_.contains(axis)) continue;
      const int room = std::max(1, most_ranks / shape.size());
      shape[axis] = std::min(set_.mesh[axis], room);
    }
    std::vector<std::uint32_t> outline_of_rank, table_of_rank;
    std::vector<int> node_of_rank;
    for (int rank = 0; rank < shape.size(); ++rank) {
      const mesh::Coordinates place = mesh::coordinates(shape, rank);
      const std::size_t c = class_at(classes_.outline.mesh, place);
      outline_of_rank.push_back(classes_.outline.outline_of_rank[c]);
      table_of_rank.push_back(costs_.table_of_rank[c]);
      node_of_rank.push_back(
          layout_.node_of_rank[at(whole_rank(set_.mesh, classes_.rank[c], place, tight_))]);
    }
    const CoarseSet coarse =
        coarsen(shape, classes_.outline.outlines, outline_of_rank, costs_.tables, table_of_rank);
    const DeviationDraws draws{noise_, 1};
    CoarseOptions options{.plays = std::clamp(4000 / shape.size(), 16, 1000)};
    options.factor = [&](int rank, int play) {
      return 1 + draws(rank, node_of_rank[at(rank)], play);
    };
    const auto without = play_coarse(coarse, options);
    options.op_noise = noise_.op;
    const auto with = play_coarse(coarse, options);
    const double scale =
        growth(mesh::group_size(shape, tight_), mesh::group_size(set_.mesh, tight_));
    double mean = 0, squares = 0;
    const double counted = options.plays - 1;
    for (std::size_t play = 1; play < with.size(); ++play) {
      const double more = longest(with[play]) - longest(without[play]);
      mean += more / counted;
      squares += more * more / counted;
    }
    return {.mean = mean * scale, .deviation = std::sqrt(std::max(0.0, squares - mean * mean))};
  }

  /// Returns the mean and variance of the largest deviation of the ranks of a group along the tight
  /// axes.
  Largest typical_deviation(const OwnDeviation& own) const {
    std::map<int, double> on_node;
    for (const int rank : mesh::group_members(set_.mesh, 0, tight_)) {
      ++on_node[layout_.node_of_rank[at(rank)]];
    }
    std::map<double, double> nodes;  // number of nodes by the number of members on them
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

  /// lowest() and highest() return bounds of a rank's deviation: the bounds of its own part,
  /// widened by 7 standard deviations of its node's part.
  [[nodiscard]] double lowest(const OwnDeviation& own) const { return own.low() - 7 * noise_.node; }
  [[nodiscard]] double highest(const OwnDeviation& own) const {
    return own.high() + 7 * noise_.node;
  }

  /// Returns the mean and variance of a distribution that lies between `low` and `high`, by
  /// integrating its distribution function.
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

  /// For each kind, plays steps in which one rank is slowed by the largest possible deviation and
  /// by twice as much, to find how the step's time responds. Returns the standard deviation of a
  /// step, in nanoseconds, that comes from ranks which are not the slowest but lie on the critical
  /// path: in a pipeline, the stages that a microbatch passes before and after the slowest stage.
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
    // If there are more than most_kinds kinds, only one in `every` consecutive kinds was played;
    // each other kind takes the result of the last played kind before it.
    for (std::size_t k = 0; k < kinds.all.size(); ++k) {
      const Kind& seen = kinds.all[k - k % every];
      kinds.all[k].from = seen.from;
      kinds.all[k].at = seen.at;
      kinds.all[k].slope = seen.slope < most / 2 ? 0 : seen.slope;  // no rank waits for it
    }
    if (factor.size() == 1) return 0;
    const std::vector<double> all_slow(factor.size(), usual + range);
    const double all = (settle(coarse_, all_slow).period - at_usual) / range;
    const double passed = std::max(0.0, all - most);
    return passed * std::sqrt(typical.variance / static_cast<double>(factor.size() - 1));
  }

  /// Returns the mean number of replicas on a node; replicas on the same node deviate together.
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

  /// Returns the expected length, in nanoseconds, of the longest step among all replicas. `spread`
  /// is the part of a step's standard deviation that is due to the noise of single ops and to ranks
  /// on the critical path other than the slowest.
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
    // The range is widened because it would be empty if only single ops deviate.
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

  /// Returns the logarithm of the probability that no rank of the mesh makes a step longer than
  /// `time`.
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

  /// Returns exp(log_below) at equally spaced points from `low` to `high`.
  template <class LogBelow>
  static std::vector<double> chances(const LogBelow& log_below, double low, double high) {
    constexpr int parts = 800;
    std::vector<double> chance;
    for (int i = 0; i <= parts; ++i) {
      chance.push_back(std::exp(log_below(low + (high - low) * i / parts)));
    }
    return chance;
  }

  /// Returns the value at x of a distribution function after a normal deviation with standard
  /// deviation `width` is added. `chance` is the function before that, at equally spaced points
  /// from `low` to `high`.
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
  mesh::AxisSet tight_, loose_;  ///< parts of the axes that classes_ removed
};

}  // namespace

std::vector<double> play_each_rank(const program::ProgramSet& set, const Classes& classes,
                                   const Costs& class_costs, const Noise& noise,
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
  std::vector<double> seconds;
  for (std::size_t play = 1; play < plays.size(); ++play) {
    seconds.push_back(longest(plays[play]) * 1e-9);
  }
  return seconds;
}

mesh::AxisSet tight_axes(const mesh::Shape& mesh, const program::OutlineSet& classes,
                         const Costs& costs) {
  mesh::AxisSet tight = mesh::varying(mesh, mesh::every_axis);
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  for (std::size_t c = 0; c < classes.outline_of_rank.size(); ++c) {
    const std::uint32_t outline = classes.outline_of_rank[c], table = costs.table_of_rank[c];
    if (!known.insert({outline, table}).second) continue;
    const Stretches stretches{classes.outlines[outline], costs.tables[table]};
    for (const mesh::Axis axis : mesh::all_axes) {
      if (!stretches.is_tight(axis)) tight = tight - axis;
    }
  }
  return tight;
}

double expected_delay(const program::ProgramSet& set, const Classes& classes, const Costs& costs,
                      const Noise& noise, const Layout& layout) {
  if (!noise.any()) return 0;
  return Delay{set, classes, costs, noise, layout}.nanoseconds() * 1e-9;
}

}  // namespace isoscale::simulate
