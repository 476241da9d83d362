// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "simulate/noise.hpp"
#include "simulate/simulate.hpp"

namespace isoscale::simulate {
namespace {

/// Returns the expected largest of `large` standard normal draws divided by the expected largest of
/// `small` draws, by Blom's formula (1958); 1 if `small` is at most 1.
double growth(double small, double large) {
  const auto largest = [](double n) { return normal_quantile((n - 0.375) / (n + 0.25)); };
  return small > 1 ? largest(large) / largest(small) : 1;
}

double mean_of(const std::vector<double>& values) {
  return std::reduce(values.begin(), values.end()) / static_cast<double>(values.size());
}

/// Simulates programs with the noise of ranks, nodes and ops. Returns, for each step but the first,
/// the nanoseconds of the slowest rank.
std::vector<double> slowest_steps(const CoarseSet& set, const Noise& noise, const Layout& layout,
                                  CoarseOptions options) {
  const std::vector<double> drawn = deviations(noise, layout, options.plays, options.seed);
  const std::size_t ranks = layout.node_of_rank.size();
  options.factor = [&](int rank, int play) { return 1 + drawn[at(play) * ranks + at(rank)]; };
  const auto plays = play_coarse(set, options);
  std::vector<double> result;
  for (std::size_t play = 1; play < plays.size(); ++play) {
    units::Nanoseconds time{};
    for (const timeline::Interval& rank : plays[play]) time = std::max(time, rank.end - rank.begin);
    result.push_back(static_cast<double>(time.value()));
  }
  return result;
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

/// Finds, for each axis, the longest stretch of computation in which the main stream (the one with
/// the most compute time) does not wait for communication along the axis. The computation
/// after the last communication of a step and before the first one of the next step is one stretch.
class Stretches {
 public:
  Stretches(const program::Outline& outline, const Table& table) {
    const program::StreamId main = main_stream(outline, table);
    // [stream][op]: for each axis, the number of the stream's communication ops up to this op.
    std::vector<std::vector<Counts>> meetings(outline.streams.size());
    for (std::size_t i = 0; i < outline.ops.size(); ++i) {
      const program::OutlineOp& op = outline.ops[i];
      // If an op of the main stream waits for an op of another stream, that op comes earlier in the
      // program, so its communication is already counted.
      auto& here = meetings[op.stream];
      here.push_back(here.empty() ? Counts{} : here.back());
      for (const mesh::Axis axis : mesh::all_axes) {
        if (program::communicates(op.kind) && op.axes.contains(axis)) ++here.back()[index(axis)];
      }
      if (op.stream != main) continue;
      meet(here.back(), op.stream);
      for (const program::Wait& wait : outline.waits_of(op)) {
        meet(meetings[wait.stream][wait.count - 1], wait.stream);
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

  /// Records that the main stream waits, at this point of the program, until the first
  /// `counts[axis]` communication ops of `stream` along each axis have ended.
  void meet(const Counts& counts, program::StreamId stream) {
    for (std::size_t a = 0; a < counts.size(); ++a) {
      if (counts[a] <= seen_[stream][a]) continue;
      seen_[stream][a] = counts[a];
      if (!met_[a]) first_[a] = time_;
      met_[a] = true;
      longest_[a] = std::max(longest_[a], time_ - last_[a]);
      last_[a] = time_;
    }
  }

  std::array<Counts, program::max_streams> seen_{};
  double time_ = 0;  ///< compute time of the main stream so far, in nanoseconds
  std::array<bool, mesh::axis_count> met_{};
  std::array<double, mesh::axis_count> first_{}, last_{}, longest_{};
};

/// The step time in nanoseconds as a function of a deviation: at + slope * (deviation - from).
struct Response {
  double from = 0, at = 0, slope = 0;
  [[nodiscard]] double operator()(double deviation) const {
    return at + slope * (deviation - from);
  }
};

/// A kind of rank: all classes (groups of equivalent ranks, see simulate.hpp) that run the same
/// program with the same op times, so that they share one table of times in `coarse_`.
struct Kind {
  std::size_t first_class = 0;
  /// The step time if one rank of the kind has a deviation and all others have a typical one. It
  /// holds for a deviation so large that the other ranks wait for this rank.
  Response step;
};

struct Moments {
  double mean = 0, variance = 0;
};

class Delay {
 public:
  Delay(const program::ProgramSet& set, const Classes& classes, const Costs& costs,
        const Noise& noise, const Layout& layout)
      : set_(set), classes_(classes), costs_(costs), noise_(noise), layout_(layout) {
    coarse_ = coarsen(classes.outline, costs);
    noiseless_ = settle(coarse_).period;
    kinds_.resize(coarse_.times.size());
    for (std::size_t c = classes.rank.size(); c-- > 0;) {
      kinds_[coarse_.table_of_rank[c]].first_class = c;
    }
    const mesh::AxisSet varying = mesh::varying(set.mesh, mesh::every_axis);
    const mesh::AxisSet gone = varying - mesh::varying(classes.outline.mesh, mesh::every_axis);
    loose_ = gone - tight_axes(set.mesh, classes.outline, costs);
    tight_ = gone - loose_;
    replica_of_group_.resize(at(set.mesh.size() / mesh::group_size(set.mesh, tight_)));
    for (int rank = 0; rank < set.mesh.size(); ++rank) {
      tight_group_.push_back(at(mesh::group_colour(set.mesh, rank, tight_)));
      replica_of_group_[tight_group_.back()] = at(mesh::group_index(set.mesh, rank, loose_));
    }
  }

  double nanoseconds(double share) {
    const Moments op = noise_.op > 0 ? op_delay() : Moments{};
    draw();
    const double passing = respond(typical_deviation());
    return mean_of_slowest(std::hypot(std::sqrt(share * op.variance), passing)) + op.mean -
           noiseless_;
  }

 private:
  /// Returns the mean and variance of the nanoseconds that the noise of single ops adds to a step
  /// of one replica (all ranks with the same coordinates along the axes in `loose_`). It simulates
  /// one rank for each class and all ranks along the tight axes, along which ranks wait for each
  /// other all through a step, once with and once without the noise of ops, and takes the
  /// difference. Both simulations include the noise of ranks and nodes, since this hides some of
  /// the ops' noise. If n ranks along the tight axes are too many, only m are simulated. The
  /// slowest of n is later than the slowest of m, so the mean is then multiplied by growth(m, n).
  [[nodiscard]] Moments op_delay() const {
    constexpr int most_ranks = 256;
    mesh::Shape shape = classes_.outline.mesh;
    for (const mesh::Axis axis : mesh::all_axes) {
      if (!tight_.contains(axis)) continue;
      const int room = std::max(1, most_ranks / shape.size());
      shape[axis] = std::min(set_.mesh[axis], room);
    }
    std::vector<std::uint32_t> outline_of_rank;
    Costs costs{.tables = costs_.tables, .table_of_rank = {}};
    Layout layout;
    for (int rank = 0; rank < shape.size(); ++rank) {
      // The tight axes have one coordinate each in the mesh of classes, and a class is represented
      // by its rank at coordinate 0 of them.
      mesh::Coordinates in_classes = mesh::coordinates(shape, rank);
      int beyond = 0;
      for (const mesh::Axis axis : mesh::all_axes) {
        if (!tight_.contains(axis)) continue;
        beyond += mesh::stride(set_.mesh, axis) * std::exchange(in_classes[axis], 0);
      }
      const std::size_t c = at(mesh::rank_at(classes_.outline.mesh, in_classes));
      outline_of_rank.push_back(classes_.outline.outline_of_rank[c]);
      costs.table_of_rank.push_back(costs_.table_of_rank[c]);
      layout.node_of_rank.push_back(layout_.node_of_rank[at(classes_.rank[c] + beyond)]);
    }
    const CoarseSet coarse =
        Coarsener{shape, classes_.outline.outlines}.set(shape, std::move(outline_of_rank), costs);
    CoarseOptions options{.plays = std::clamp(4000 / shape.size(), 16, 1000)};
    const std::vector<double> without = slowest_steps(coarse, noise_, layout, options);
    options.op_noise = noise_.op;
    const std::vector<double> with = slowest_steps(coarse, noise_, layout, options);
    const double scale =
        growth(mesh::group_size(shape, tight_), mesh::group_size(set_.mesh, tight_));
    double mean = 0, squares = 0;
    const auto counted = static_cast<double>(with.size());
    for (std::size_t play = 0; play < with.size(); ++play) {
      const double more = with[play] - without[play];
      mean += more / counted;
      squares += more * more / counted;
    }
    return {.mean = mean * scale, .variance = std::max(0.0, squares - mean * mean)};
  }

  /// Draws the deviation of every rank in many steps.
  void draw() {
    constexpr int most_draws = 250'000, least_steps = 48, most_steps = 40'000;
    const int ranks = set_.mesh.size();
    steps_ = std::clamp(most_draws / ranks, least_steps, most_steps);
    deviations_ = deviations(noise_, layout_, steps_);
    // Shifts all deviations so that their mean is the true mean of the noise, which is known. With
    // few draws, most of the sampling error of their maximum is the error of their mean.
    const double drawn = mean_of(deviations_);
    const double known = mean_of(standing_deviations(noise_, ranks)) +
                         (noise_.draws.empty() ? 0 : mean_of(noise_.draws));
    for (double& deviation : deviations_) deviation += known - drawn;
  }

  /// Calls `use` with the deviations of the ranks in each step, and with the largest deviation in
  /// each group along the tight axes.
  template <class Use>
  void for_each_step(const Use& use) const {
    const std::size_t ranks = at(set_.mesh.size());
    std::vector<double> largest(at(set_.mesh.size() / mesh::group_size(set_.mesh, tight_)));
    for (std::size_t i = 0; i < deviations_.size(); i += ranks) {
      const std::span step = std::span{deviations_}.subspan(i, ranks);
      std::ranges::fill(largest, -1.0);
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        double& of_group = largest[tight_group_[rank]];
        of_group = std::max(of_group, step[rank]);
      }
      use(step, std::span<const double>{largest});
    }
  }

  /// Returns the mean and variance, over groups and steps, of the largest deviation in a group
  /// along the tight axes.
  [[nodiscard]] Moments typical_deviation() const {
    Moments sum;
    double count = 0;
    for_each_step([&](std::span<const double> /*of_ranks*/, std::span<const double> largest) {
      for (const double deviation : largest) {
        sum.mean += deviation;
        sum.variance += deviation * deviation;
      }
      count += static_cast<double>(largest.size());
    });
    const double mean = sum.mean / count;
    return {.mean = mean, .variance = std::max(0.0, sum.variance / count - mean * mean)};
  }

  /// Returns a relative deviation that hardly any rank exceeds.
  [[nodiscard]] double highest() const {
    constexpr double reach = 7;  // standard deviations
    const double standing =
        noise_.standing.empty() ? 0 : *std::ranges::max_element(noise_.standing) - 1;
    return standing + (noise_.draws.empty() ? reach * noise_.rank : noise_.draws.back()) +
           reach * noise_.node;
  }

  /// Finds how the step time responds to deviations of ranks, and stores this in `kinds_`. For each
  /// kind, it simulates a step in which one rank is slower by a deviation that hardly any rank
  /// exceeds, and a step in which it is slower by twice as much. At most 64 kinds are simulated;
  /// the others get the response of a simulated one. Returns the standard deviation of the step
  /// time, in nanoseconds, that comes from ranks on the critical path other than the slowest one:
  /// in a pipeline, the stages that a microbatch passes before and after the slowest stage.
  double respond(const Moments& typical) {
    constexpr std::size_t most_kinds = 64;
    // A smaller deviation would change the step by too few nanoseconds, which are whole numbers
    // here.
    constexpr double least_range = 0.01;
    const double usual = std::max(0.0, 1 + typical.mean);
    const std::vector<double> factor(classes_.rank.size(), usual);
    const double range = std::max(highest() - typical.mean, least_range);
    const CoarseSteady at_usual = settle(coarse_, factor);
    const std::size_t every = 1 + (kinds_.size() - 1) / most_kinds;
    // For each kind that is simulated, there are two steps: in one, a rank is slower by `range`, in
    // the other by twice as much.
    std::vector<std::vector<double>> plays;
    for (std::size_t k = 0; k < kinds_.size(); k += every) {
      for (const int times : {1, 2}) {
        plays.push_back(factor);
        plays.back()[kinds_[k].first_class] = usual + times * range;
      }
    }
    plays.emplace_back(factor.size(), usual + range);  // all ranks are slow
    const std::vector<CoarseSteady> played = settle_each(coarse_, plays, at_usual);
    double most = 0;
    for (std::size_t k = 0; k < kinds_.size(); k += every) {
      const std::size_t first = 2 * (k / every);
      const double once = played[first].period;
      kinds_[k].step = {.from = typical.mean + range,
                        .at = once,
                        .slope = (played[first + 1].period - once) / range};
      most = std::max(most, kinds_[k].step.slope);
    }
    // With more than most_kinds kinds, only every `every`-th one was simulated; the others take the
    // result of the last simulated kind before them.
    double responds = 0;  // the largest of the responses to a typical deviation
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      Response& step = kinds_[k].step;
      step = kinds_[k - k % every].step;
      if (step.slope < most / 2) step.slope = 0;  // no rank waits for this kind
      if (step.slope > 0) responds = std::max(responds, step(typical.mean));
    }
    usual_ = {.from = typical.mean,
              .at = at_usual.period,
              .slope = (played.back().period - at_usual.period) / range};
    usual_change_ = most * std::sqrt(typical.variance);
    slack_ =
        usual_change_ > 0 ? std::clamp(2 * (usual_.at - responds) / usual_change_, 0.0, 1.0) : 0;
    if (factor.size() == 1) return 0;
    const double passed = std::max(0.0, usual_.slope - most);
    return passed * std::sqrt(typical.variance / static_cast<double>(factor.size() - 1));
  }

  /// Returns the expected time, in nanoseconds, of the step that is longest among all replicas; the
  /// time without noise if no kind of rank delays others. `spread` is the part of a step's
  /// standard deviation that comes from the noise of single ops and from ranks on the critical path
  /// other than the slowest one.
  [[nodiscard]] double mean_of_slowest(double spread) const {
    struct Felt {  // a rank that others wait for
      std::size_t rank = 0, replica = 0;
      const Kind* kind = nullptr;
    };
    std::vector<Felt> felt;
    for (int rank = 0; rank < set_.mesh.size(); ++rank) {
      const Kind& kind = kinds_[coarse_.table_of_rank[classes_.class_of_rank[at(rank)]]];
      if (kind.step.slope <= 0) continue;
      felt.push_back({at(rank), at(mesh::group_index(set_.mesh, rank, loose_)), &kind});
    }
    if (felt.empty()) return noiseless_;
    const std::size_t replicas = at(mesh::group_size(set_.mesh, loose_));
    const double share =
        static_cast<double>(replicas) / static_cast<double>(replica_of_group_.size());
    std::vector<double> longest(replicas), mean(replicas);
    double total = 0, least = 0, normals = 0;
    std::uint64_t draw = 0;
    for_each_step([&](std::span<const double> deviations, std::span<const double> largest) {
      std::ranges::fill(longest, 0.0);
      for (const auto& [rank, replica, kind] : felt) {
        longest[replica] = std::max(longest[replica], kind->step(deviations[rank]));
      }
      std::ranges::fill(mean, 0.0);
      for (std::size_t group = 0; group < largest.size(); ++group) {
        mean[replica_of_group_[group]] += share * largest[group];
      }
      least += usual_(*std::ranges::max_element(mean)) / steps_;
      double slowest = 0;
      for (std::size_t replica = 0; replica < replicas; ++replica) {
        const double normal = quick_normal(mixed(++draw));
        normals += normal;
        // usual_(mean) is the time of a step in which all ranks have the mean deviation. With full
        // slack (1), a step takes at least this time; with less slack, this limit is lower.
        const double floor = usual_(mean[replica]) - 2 * (1 - slack_) * usual_change_;
        const double time = std::max(longest[replica], floor);
        slowest = std::max(slowest, time + spread * normal);
      }
      total += slowest;
    });
    // The second term corrects for the mean of the drawn numbers, which should be 0. A step time is
    // convex in the deviations, so its mean is at least that of steps in which all groups of a
    // replica have their mean deviation.
    return std::max(total / steps_ - spread * normals / static_cast<double>(draw), least);
  }

  const program::ProgramSet& set_;
  const Classes& classes_;
  const Costs& costs_;
  const Noise& noise_;
  const Layout& layout_;
  CoarseSet coarse_;
  double noiseless_ = 0;
  /// Axes that `classes_` removed: those in tight_axes(), and the others.
  mesh::AxisSet tight_, loose_;
  std::vector<std::size_t> tight_group_;       ///< [rank]: its group along the tight axes
  std::vector<std::size_t> replica_of_group_;  ///< [group along the tight axes]
  std::vector<Kind> kinds_;
  Response usual_;           ///< the step time if all ranks have the same deviation
  double usual_change_ = 0;  ///< largest change of a step by a typical deviation, in nanoseconds
  /// The time by which `kinds_` give too short a step for typical deviations, in units of
  /// usual_change_ / 2, from 0 to 1. It is not 0 where a rank can be a little late without delaying
  /// others.
  double slack_ = 0;
  int steps_ = 0;
  std::vector<double> deviations_;  ///< [step][rank]
};

}  // namespace

std::vector<double> play_each_rank(const program::ProgramSet& set, const Classes& classes,
                                   const Costs& class_costs, const Noise& noise,
                                   const Layout& layout, int steps, std::uint64_t seed) {
  Costs costs{.tables = class_costs.tables, .table_of_rank = {}};
  for (const std::uint32_t class_rank : classes.class_of_rank) {
    costs.table_of_rank.push_back(class_costs.table_of_rank[class_rank]);
  }
  const Coarsener coarse{set.mesh, classes.outline.outlines};
  std::vector<double> seconds =
      slowest_steps(coarse.set(set.mesh, set.program_of_rank, costs), noise, layout,
                    {.plays = 1 + steps, .op_noise = noise.op, .seed = seed});
  for (double& step : seconds) step *= 1e-9;
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
                      const Noise& noise, const Layout& layout, double share) {
  if (!noise.any()) return 0;
  return Delay{set, classes, costs, noise, layout}.nanoseconds(share) * 1e-9;
}

}  // namespace isoscale::simulate
