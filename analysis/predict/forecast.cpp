// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/forecast.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "analysis/predict/search.hpp"
#include "analysis/value_units.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "units/quantity_text.hpp"
#include "workloads/stack/options.hpp"

namespace isoscale::analysis::predict {
namespace {

/// The mesh and options that are predicted at a rank count, or the reason why there are none.
struct Planned {
  int ranks = 0;
  std::optional<workloads::Request> request{};
  std::string reason{};
};
bool has_request(const Planned& at) { return at.request.has_value(); }

[[noreturn]] void refuse_all(const Question& question, const std::vector<Planned>& all) {
  std::vector<std::string> distinct;
  for (const Planned& at : all) {
    if (std::ranges::find(distinct, at.reason) == distinct.end()) distinct.push_back(at.reason);
  }
  throw base::usage_error("{}{}", question.meshes == Meshes::searched ? "--best: " : "",
                          fmt::join(distinct, "\n"));
}

/// Searches for the fastest mesh and options for a rank count, and stores the results in `into`.
workloads::Request searched(const Question& question, int ranks, Prediction& into) {
  SearchResult found = search(question, ranks);
  into.searched = found.looked_at;
  // This function is called in ascending order of ranks, so the result for the most ranks remains.
  into.best = std::move(found.best);
  if (!found.complete) {
    into.warnings.push_back(fmt::format(
        "on {} ranks there was no time to simulate all that may be the fastest", ranks));
  }
  return into.best.front().request;
}

/// Returns the mesh and options to predict for each rank count, or the reason why there are none.
/// Throws base::UsageError if no rank count has any.
std::vector<Planned> plan(const Question& question, Prediction& into) {
  std::vector<Planned> all;
  for (const int ranks : question.ranks) {
    Planned& at = all.emplace_back(Planned{.ranks = ranks});
    const bool is_search = question.meshes == Meshes::searched;
    try {
      at.request = is_search ? searched(question, ranks, into) : request_at(question, ranks);
    } catch (const base::UsageError& error) {
      at.reason = is_search ? fmt::format("{}: {}", base::counted(ranks, "rank"), error.what())
                            : std::string{error.what()};
    }
  }
  if (std::ranges::none_of(all, has_request)) refuse_all(question, all);
  return all;
}

/// Predicts a curve. If a rank count cannot be predicted, its point says why, and `planned` marks
/// it so that curves made later leave it out too. Throws only if no rank count can be predicted.
ForecastCurve curve_of(const Question& question, const simulate::Machine& machine,
                       std::string title, std::vector<Planned>& planned) {
  ForecastCurve result{.title = std::move(title), .points = {}};
  for (Planned& at : planned) {
    if (at.request) {
      try {
        result.points.push_back(forecast_of(question, machine, *at.request, question.node_ranks));
        continue;
      } catch (const base::UsageError& error) {
        at.request.reset();
        at.reason = error.what();
      }
    }
    result.points.push_back({.ranks = at.ranks,
                             .nodes = nodes_of(at.ranks, question.node_ranks),
                             .refused = at.reason});
  }
  if (std::ranges::none_of(planned, has_request)) refuse_all(question, planned);
  return result;
}

/// Returns the measured point that is the baseline; nullptr if the baseline is a forecast.
const MeasuredPoint* measured_baseline(const Question& question) {
  const auto& measured = question.measured;
  if (measured.empty()) return nullptr;
  if (!question.baseline) return &measured.front();
  const auto found = std::ranges::find(measured, *question.baseline, &MeasuredPoint::ranks);
  return found == measured.end() ? nullptr : &*found;
}

ForecastBaseline baseline_of(const Forecast& forecast) {
  return {.ranks = forecast.ranks,
          .throughput = forecast.throughput.value,
          .loss = step_loss(forecast).value_or(efficiency::StepLoss{})};
}

/// Returns the forecast of the smallest rank count, or of the count that --baseline names. Throws
/// base::UsageError if there is none.
ForecastBaseline predicted_baseline(const Question& question, const ForecastCurve& curve) {
  const auto found = std::ranges::find_if(curve.points, [&](const Forecast& at) {
    return at.refused.empty() && (!question.baseline || at.ranks == *question.baseline);
  });
  if (found != curve.points.end()) return baseline_of(*found);
  std::vector<int> known = question.ranks;
  for (const MeasuredPoint& point : question.measured) known.push_back(point.ranks);
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  throw base::usage_error("--baseline {}: neither measured nor predicted; name one of {}",
                          question.baseline.value_or(0), fmt::join(known, ", "));
}

/// Returns the measured baseline as it is predicted on `machine`.
ForecastBaseline simulated_baseline(const Question& question, const simulate::Machine& machine,
                                    const MeasuredPoint& point) {
  const int nodes = std::max(1, point.nodes), node_ranks = (point.ranks + nodes - 1) / nodes;
  workloads::Request request =
      question.workload->scale(question.base, point.mesh, question.scaling);
  const Forecast forecast = forecast_of(question, machine, std::move(request), node_ranks);
  ForecastBaseline baseline = baseline_of(forecast);
  baseline.measured = true;
  baseline.loss.step = forecast.step_time.value;
  return baseline;
}

/// Computes the speed-ups and efficiencies of a curve and returns the rank count of the baseline.
/// All curves use the baseline with the same rank count, but each curve takes the baseline's time
/// on its own `machine`, which a what-if may have changed. The time of a measured baseline is its
/// predicted one multiplied by `of_measured`, the ratio of measured to predicted step time on the
/// unchanged machine; the first call, which is for that machine, sets it. Throws base::UsageError
/// if there is no baseline.
int compare_with_baseline(const Question& question, const simulate::Machine& machine,
                          std::optional<double>& of_measured, ForecastCurve& curve) {
  const MeasuredPoint* const measured = measured_baseline(question);
  ForecastBaseline baseline = measured == nullptr
                                  ? predicted_baseline(question, curve)
                                  : simulated_baseline(question, machine, *measured);
  if (measured != nullptr) {
    if (!of_measured) of_measured = baseline.throughput / measured->throughput;
    baseline.throughput /= *of_measured;
    baseline.loss.step *= *of_measured;
  }
  for (Forecast& forecast : curve.points) {
    if (forecast.refused.empty()) set_against(baseline, forecast);
  }
  return baseline.ranks;
}

/// Returns the measurement that would narrow the interval of the largest rank count most, since
/// that interval is the widest. Absent if none narrows it by at least 2%, and for a machine that is
/// known by a data sheet.
std::optional<NextMeasurement> next_of(const Question& question, const ForecastCurve& curve) {
  if (!question.fit || question.run == nullptr) return std::nullopt;
  const auto found = std::find_if(curve.points.rbegin(), curve.points.rend(),
                                  [](const Forecast& at) { return at.refused.empty(); });
  if (found == curve.points.rend()) return std::nullopt;
  // A measurement must narrow the interval to at most this share of its width.
  constexpr double worth = 0.98;
  const std::vector<NextMeasurement> all =
      next_measurements(*question.run, question.points, *question.fit, question.machine, *found);
  if (all.empty() || all.front().width_then > worth * all.front().width_now) return std::nullopt;
  return all.front();
}

std::optional<double> option_number(const workloads::Request& request, const std::string& key) {
  const auto found = request.options.find(key);
  if (found == request.options.end()) return std::nullopt;
  return std::stod(found->second);
}

/// Returns the unit of all throughputs of a prediction.
std::string unit_of(const Question& question, const ForecastCurve& curve) {
  std::vector<double> growths;
  for (const MeasuredPoint& at : question.measured) growths.push_back(at.work_growth);
  for (const Forecast& at : curve.points) growths.push_back(at.work_growth);
  return throughput_unit(question.workload->throughput_unit, growths);
}

/// Describes the batch that all points share, and the options that --set named.
void describe_work(const Question& question, Prediction& prediction) {
  for (const std::string& key : question.fixed) {
    prediction.options += fmt::format("{}{}={}", prediction.options.empty() ? "" : " ", key,
                                      question.base.options.at(key));
  }
  if (question.scaling == workloads::Scaling::weak) return;
  for (const Forecast& at : prediction.base.points) {
    if (!at.refused.empty()) continue;
    prediction.batch = option_number(at.request, "batch");
    if (prediction.batch && question.workload->model_use != workloads::ModelUse::none) {
      prediction.tokens_per_step = *prediction.batch * question.base.model.sequence;
    }
    return;
  }
}

/// Adds the warnings that concern some rank counts, which they name.
void warn(const Question& question, Prediction& prediction) {
  const auto add = [&](const auto& concerns, std::string_view before, std::string_view after) {
    std::vector<int> counts;
    for (const Forecast& at : prediction.base.points) {
      if (concerns(at)) counts.push_back(at.ranks);
    }
    if (counts.empty()) return;
    prediction.warnings.push_back(fmt::format("{}{}{}", before, fmt::join(counts, ", "), after));
  };
  add(
      [](const Forecast& at) {
        const std::optional<double> microbatches = option_number(at.request, "microbatches");
        return at.request.mesh.pp > 1 && microbatches && *microbatches < 2.0 * at.request.mesh.pp;
      },
      "on ",
      " ranks there are fewer than two microbatches for each pipeline stage, so that the bubble is "
      "long: use a larger batch or a smaller pp");
  std::vector<const workloads::Request*> requests;
  for (const Forecast& at : prediction.base.points) {
    if (at.refused.empty()) requests.push_back(&at.request);
  }
  if (question.workload->is_training()) {
    // Only the user's own options are worth a warning; a software profile may set some without
    // effect.
    for (const auto& [key, sentence] : workloads::stack::idle_options(requests)) {
      if (std::ranges::find(question.fixed, key) == question.fixed.end()) continue;
      prediction.warnings.push_back(sentence);
    }
  }
  add([](const Forecast& at) { return at.extrapolated; }, "",
      fmt::format(" ranks are more than {} times the {} that were measured: take them with care",
                  most_trusted_growth, question.fit ? question.fit->most_ranks : 0));
  add([](const Forecast& at) { return at.fits == false; }, "on ",
      " ranks the step needs more memory than a rank has; shown as if it fitted (--best looks for "
      "what does)");
}

/// Adds the command that measures the best candidate, and a warning if it needs too much memory.
void add_command(const Question& question, Prediction& prediction) {
  const workloads::Request& best = prediction.best.front().request;
  prediction.command = command_of(question, best);
  prediction.command_memory = run_memory(*question.workload, best).device;
  const auto& memory = question.machine.memory;
  if (!memory || memory->capacity <= 0 || *prediction.command_memory <= memory->capacity) return;
  prediction.warnings.push_back(fmt::format(
      "the command that runs the best needs {} on the device of a rank, more than the {} it has: "
      "isoscale run keeps tensors that training software frees",
      value_text(*prediction.command_memory, Unit::bytes),
      value_text(memory->capacity, Unit::bytes)));
}

/// Consecutive points of a curve at which the same cause limits the efficiency.
struct Stretch {
  const Forecast *first = nullptr, *last = nullptr;  ///< not owned
};

std::vector<Stretch> stretches(const ForecastCurve& curve) {
  std::vector<Stretch> result;
  for (const Forecast& point : curve.points) {
    if (!point.waterfall) continue;
    if (result.empty() || result.back().last->limit != point.limit) {
      result.push_back({.first = &point});
    }
    result.back().last = &point;
  }
  return result;
}

std::string what(const Stretch& stretch) {
  const Forecast& at = *stretch.last;
  if (at.limit.empty()) return "nothing costs a thousandth of the step";
  const auto lost = std::ranges::find(at.waterfall->lost, at.limit, &efficiency::LostTime::cause);
  return fmt::format("{} costs most ({} of the step on {})", at.limit,
                     units::format_percent(lost->seconds / at.waterfall->measured), at.ranks);
}

std::string where(const std::vector<Stretch>& all, std::size_t i) {
  const int from = all[i].first->ranks, to = all[i].last->ranks;
  if (all.size() == 1) return from == to ? "on " + base::counted(to, "rank") : "all along";
  if (i == 0) return "up to " + base::counted(to, "rank");
  if (i + 1 == all.size()) return fmt::format("from {} on", base::counted(from, "rank"));
  if (from == to) return "on " + base::counted(to, "rank");
  return fmt::format("from {} to {} ranks", from, to);
}

}  // namespace

Prediction predict(const Question& question) {
  Prediction prediction{static_cast<const Subject&>(question)};
  prediction.machine = question.machine.name;
  prediction.software = question.machine.software.name;
  prediction.workload = question.workload->name;
  prediction.ceiling = mfu_ceiling(question.machine, question.base.precision);
  if (question.fit) prediction.correction = question.fit->correction;
  std::vector<Planned> planned = plan(question, prediction);
  std::optional<double> of_measured;
  prediction.base = curve_of(question, question.machine,
                             question.fit ? "as measured" : "as the data sheet says", planned);
  prediction.throughput_unit = unit_of(question, prediction.base);
  prediction.baseline =
      compare_with_baseline(question, question.machine, of_measured, prediction.base);
  for (const WhatIf& what_if : question.what_if) {
    const simulate::Machine machine = changed(question.machine, what_if);
    prediction.what_if.push_back(curve_of(question, machine, what_if.title, planned));
    compare_with_baseline(question, machine, of_measured, prediction.what_if.back());
  }
  prediction.limits = limit_sentences(prediction.base);
  prediction.next = next_of(question, prediction.base);
  describe_work(question, prediction);
  if (!prediction.best.empty()) add_command(question, prediction);
  warn(question, prediction);
  const std::string commands =
      prediction.command + (prediction.next ? prediction.next->command : "");
  const bool names_model = commands.find(" --model ") != std::string::npos;
  const std::string model = names_model ? model_to_write(question) : "";
  if (!model.empty()) prediction.warnings.push_back(model);
  return prediction;
}

std::vector<std::string> limit_sentences(const ForecastCurve& curve) {
  const std::vector<Stretch> all = stretches(curve);
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < all.size(); ++i) {
    sentences.push_back(fmt::format("{}: {}", where(all, i), what(all[i])));
  }
  return sentences;
}

}  // namespace isoscale::analysis::predict
