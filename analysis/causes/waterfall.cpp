// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/causes/waterfall.hpp"

#include <cmath>
#include <set>

namespace isoscale::analysis {
namespace {

/// The causes explain the loss only if traced and untraced steps differ by at most this share of
/// the measured step.
constexpr double most_untraced = 0.1;

double transfer_of(const StepCosts& costs, mesh::AxisSet axes) {
  const auto found = costs.transfer.find(axes);
  return found == costs.transfer.end() ? 0 : found->second;
}

/// Transfers, bubble and waiting in one.
double together(const StepCosts& costs) {
  if (costs.communication) return *costs.communication + costs.waiting;
  double sum = costs.bubble + costs.waiting;
  for (const auto& [axes, seconds] : costs.transfer) sum += seconds;
  return sum;
}

/// Waiting that is neither known to be imbalance nor noise.
double undivided(const StepCosts& costs) { return costs.waiting - costs.uneven - costs.hiccups; }

/// Adds causes as differences from the scaled baseline.
class Differences {
 public:
  Differences(const StepLoss& point, const StepLoss& baseline, double scale, Waterfall& into)
      : point_(point), baseline_(baseline), scale_(scale), into_(into) {}

  void add(std::string cause, double of_point, double of_baseline) {
    into_.lost.push_back({.cause = std::move(cause), .seconds = of_point - scale_ * of_baseline});
  }
  void add(std::string cause, double StepCosts::*part) {
    add(std::move(cause), point_.costs.*part, baseline_.costs.*part);
  }
  /// Whether both have the part.
  bool add(std::string cause, std::optional<double> StepCosts::*part) {
    if (!(point_.costs.*part) || !(baseline_.costs.*part)) return false;
    add(std::move(cause), *(point_.costs.*part), *(baseline_.costs.*part));
    return true;
  }
  void say(const std::string& sentence) { into_.missing.push_back(sentence); }

  void gemms() {
    if (add("GEMMs", &StepCosts::gemm_alone)) {
      add("GEMM overlap", &StepCosts::gemm_overlap);
      return;
    }
    add("GEMMs", &StepCosts::gemm);
    say("GEMMs by themselves and their overlap are not separated: that takes solo times at both "
        "ends");
  }
  /// Whether transfers and waiting are known apart at both ends.
  bool communication() {
    if (!point_.costs.communication && !baseline_.costs.communication) return true;
    add("communication", together(point_.costs), together(baseline_.costs));
    say("transfers and waiting are not separated: some partners were not traced, or their clocks"
        " not aligned");
    return false;
  }
  void transfers() {
    std::set<mesh::AxisSet> axes;
    for (const auto& [at, seconds] : point_.costs.transfer) axes.insert(at);
    for (const auto& [at, seconds] : baseline_.costs.transfer) axes.insert(at);
    for (const mesh::AxisSet at : axes) {
      add(mesh::to_string(at) + " transfer", transfer_of(point_.costs, at),
          transfer_of(baseline_.costs, at));
    }
  }
  void waits() {
    if (add("imbalance", &StepCosts::imbalance)) {
      add("noise", &StepCosts::noise);
      return;
    }
    add("imbalance", &StepCosts::uneven);
    add("noise", &StepCosts::hiccups);
    add("waiting", undivided(point_.costs), undivided(baseline_.costs));
    say("waiting is not divided into imbalance and noise: that takes more traced steps at both "
        "ends");
  }

 private:
  const StepLoss& point_;
  const StepLoss& baseline_;
  double scale_;
  Waterfall& into_;
};

}  // namespace

Waterfall waterfall(const StepLoss& point, const StepLoss& baseline) {
  const double scale = point.work / baseline.work * baseline.ranks / point.ranks;
  Waterfall result{
      .ideal = baseline.step * scale, .measured = point.step, .lost = {}, .missing = {}};
  Differences causes{point, baseline, scale, result};
  causes.gemms();
  causes.add("other compute", &StepCosts::other_compute);
  causes.add("copies", &StepCosts::copies);
  if (causes.communication()) {
    causes.transfers();
    causes.add("bubble", &StepCosts::bubble);
    causes.waits();
  }
  causes.add("gap", &StepCosts::gap);
  causes.add("other", &StepCosts::other);
  causes.add("uneven steps", point.slowest - point.traced, baseline.slowest - baseline.traced);
  causes.add("untraced", point.step - point.slowest, baseline.step - baseline.slowest);
  result.explains = std::abs(result.lost.back().seconds) <= most_untraced * result.measured;
  return result;
}

}  // namespace isoscale::analysis
