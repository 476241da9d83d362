// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>

#include "analysis/advice/rules.hpp"
#include "analysis/breakdown/pipeline_report.hpp"
#include "analysis/devices/device_state.hpp"
#include "analysis/microbench/row_report.hpp"
#include "calibration/calibration.hpp"
#include "results/records/point_facts.hpp"
#include "units/text.hpp"

/// Implements the rules about GEMMs and their sizes, clocks, and the bubble of pipelines.
namespace isoscale::analysis::advice::judges {
namespace {

using results::PointData;

/// Returns the rate that the calibration measured for the GEMM whose FLOP are nearest to `flop`;
/// absent if it measured no GEMM.
std::optional<double> rate_at(const results::CalibrationData& calibration,
                              const results::GemmCeiling& ceiling, double flop) {
  std::optional<double> rate;
  double least = 0;
  for (const results::GemmRate& at : calibration.gemms) {
    if (at.dtype != ceiling.dtype || at.cache != ceiling.cache) continue;
    const double away = std::abs(std::log(2 * at.m * at.n * at.k * at.batch) - std::log(flop));
    if (rate && away >= least) continue;
    least = away;
    rate = at.rate;
  }
  return rate;
}

std::string larger_gemms(const PointData& point) {
  const auto microbatch = count_option(point, "microbatch");
  const std::string first = microbatch
                                ? fmt::format("larger --set microbatch (now {:.0f})", *microbatch)
                                : std::string{"a larger microbatch"};
  return point.mesh.tp > 1 ? first + ", or less tp: --mesh" : first + ", or a larger model";
}

/// Returns the ratio of peak FLOP/s to memory bandwidth in the GPU's datasheet; absent if one of
/// them is not known.
std::optional<double> flop_per_byte(const PointSubject& subject) {
  const results::RankFacts* const facts = facts_of(subject.run.rank_facts, *subject.point.data, 0);
  const microbench::Datasheet* const sheet =
      facts == nullptr ? nullptr : microbench::datasheet_of(*facts);
  if (sheet == nullptr || !sheet->memory) return std::nullopt;
  const auto peak = sheet->peak(subject.point.data->dtype);
  return peak ? std::optional{*peak / *sheet->memory} : std::nullopt;
}

double bytes_of_element(const std::string& dtype) { return dtype == "fp8" ? 1 : 2; }

/// Returns the share of the step that would be saved if GEMMs ran at the ceiling, the best measured
/// rate; absent if there is no ceiling.
std::optional<double> lost_in_gemms(const PointSubject& subject) {
  const auto* const ceiling =
      calibration::ceiling_of(subject.calibration, subject.point.data->dtype);
  const auto speed = gemm_speed(subject.point);
  const auto share = gemm_share(subject.point);
  if (ceiling == nullptr || !(ceiling->rate > 0) || !speed || !share) return std::nullopt;
  return std::clamp(*share * (1 - speed->rate / ceiling->rate), 0.0, 1.0);
}

/// Returns the maximum SM clock of a rank's GPU from the facts recorded about the rank.
std::optional<double> highest_clock(const PointSubject& subject, int rank) {
  const auto* const facts = facts_of(subject.run.rank_facts, *subject.point.data, rank);
  if (facts == nullptr) return std::nullopt;
  const auto found = facts->number.find("gpu_sm_clock_max");
  return found == facts->number.end() || !(found->second > 0) ? std::nullopt
                                                              : std::optional{found->second};
}

/// The most frequent throttle reason over all devices.
struct Worst {
  const results::DeviceSeries* series = nullptr;
  devices::HeldDown held{};
  std::size_t devices = 0;  ///< number of devices with any reason
};

Worst worst_of(const devices::UsableSeries& usable, double begin) {
  Worst worst;
  for (const results::DeviceSeries* const series : usable.series) {
    if (series->quantity != "throttle_reasons") continue;
    const auto all = devices::held_down(*series, begin);
    if (!all.empty()) ++worst.devices;
    for (const devices::HeldDown& held : all) {
      if (worst.series != nullptr && held.share <= worst.held.share) continue;
      worst.series = series;
      worst.held = held;
    }
  }
  return worst;
}

/// Returns the smallest number of microbatches whose bubble is at most `share` of the step. The
/// idle time does not depend on their number m, so idle / work is proportional to 1 / m.
double microbatches_for(double bubble, double microbatches, double share) {
  constexpr double rounding = 1e-9;
  const double idle = bubble / (1 - bubble) * microbatches;
  return std::ceil(idle * (1 - share) / share - rounding);
}

double bubble_with(double bubble, double microbatches, double enough) {
  const double idle = bubble / (1 - bubble) * microbatches / enough;
  return idle / (1 + idle);
}

}  // namespace

Said small_gemms(const PointSubject& subject, const Rule& rule) {
  const auto speed = gemm_speed(subject.point);
  const auto share = gemm_share(subject.point);
  if (!speed || !share || !(*share > threshold_of(rule, "GEMMs"))) return std::nullopt;
  Judgement said;
  said.evidence = {{.what = speed->alone ? "rate alone" : "rate as traced",
                    .unit = Unit::flop_rate,
                    .value = speed->rate},
                   {.what = "FLOP of a GEMM", .unit = Unit::flop, .value = speed->flop_of_one},
                   {.what = "GEMMs' share of the step", .value = *share}};
  said.next_step = larger_gemms(*subject.point.data);
  const auto* const ceiling =
      calibration::ceiling_of(subject.calibration, subject.point.data->dtype);
  if (ceiling == nullptr || !(ceiling->rate > 0)) {
    if (subject.run.device != "cuda" || speed->flop_of_one >= threshold_of(rule, "a GEMM")) {
      return std::nullopt;
    }
    said.sentence = fmt::format("GEMMs of {} on average may be too small for the GPU",
                                units::format(units::Flops{speed->flop_of_one}));
    return said;
  }
  const double reached = speed->rate / ceiling->rate;
  const auto here = rate_at(subject.calibration, *ceiling, speed->flop_of_one);
  // If the calibration was fast at this size, the size is not the cause.
  const bool can_be_fast =
      here && *here > threshold_of(rule, "ceiling at this size") * ceiling->rate;
  if (!(reached < threshold_of(rule, "of the ceiling")) || can_be_fast) return std::nullopt;
  said.sentence =
      fmt::format("GEMMs reach {} of the measured ceiling", units::format_percent(reached));
  said.evidence.push_back({.what = "ceiling", .unit = Unit::flop_rate, .value = ceiling->rate});
  if (!here) {
    said.size = lost_in_gemms(subject);
    said.sentence += ": they may be too small";
    return said;
  }
  // GEMMs of this size cannot exceed the rate that the calibration reached at the same size, so
  // only the difference from that rate counts as a loss.
  said.severity = std::clamp(*share * (1 - speed->rate / *here), 0.0, 1.0);
  said.sentence += fmt::format(" and {} of what calibration reached at their size",
                               units::format_percent(speed->rate / *here));
  said.evidence.push_back(
      {.what = "calibration at this size", .unit = Unit::flop_rate, .value = *here});
  return said;
}

Said slower_gemms(const PointSubject& subject, const Rule& rule) {
  const PointReport& point = subject.point;
  const auto& waterfall = point.causes.waterfall;
  if (!waterfall || !(waterfall->measured > 0) || !waterfall->explains) return std::nullopt;
  const auto lost = std::ranges::find(waterfall->lost, "GEMMs", &efficiency::LostTime::cause);
  if (lost == waterfall->lost.end()) return std::nullopt;
  const double all_lost = waterfall->measured - waterfall->ideal;
  const double share = std::min(lost->seconds, all_lost) / waterfall->measured;
  if (!(share > threshold_of(rule, "lost"))) return std::nullopt;
  Judgement said{.severity = std::min(share, 1.0)};
  said.sentence = fmt::format("GEMMs take {} of the step longer than ideal scaling would",
                              units::format_percent(share));
  said.evidence = {{.what = "lost", .unit = Unit::seconds, .value = lost->seconds},
                   {.what = "step", .unit = Unit::seconds, .value = waterfall->measured}};
  if (point.causes.pop && point.causes.pop->speed_scalability) {
    said.evidence.push_back(
        {.what = "FLOP/s against the baseline", .value = *point.causes.pop->speed_scalability});
  }
  said.next_step =
      point.data->mesh.tp > 1 ? "tp may make them too narrow: " + larger_gemms(*point.data)
      : subject.run.device == "host"
          ? "ranks may share memory, caches and clocks: run --workload memory,gemm to see"
          : "smaller shapes, or lower clocks with more GPUs at work: run --workload gemm to see";
  return said;
}

Said small_microbatch(const PointSubject& subject, const Rule& rule) {
  const PointData& point = *subject.point.data;
  const auto microbatch = count_option(point, "microbatch");
  const auto sequence = model_number(point, "sequence");
  const auto share = gemm_share(subject.point);
  if (!microbatch || !sequence || !share || !(*share > threshold_of(rule, "GEMMs"))) {
    return std::nullopt;
  }
  const double tokens = *microbatch * *sequence / point.mesh.cp;
  Judgement said;
  said.evidence = {{.what = "microbatch", .unit = Unit::count, .value = *microbatch},
                   {.what = "tokens of a microbatch", .unit = Unit::count, .value = tokens}};
  said.next_step =
      fmt::format("larger --set microbatch (now {:.0f}) as far as memory allows", *microbatch);
  // A product of m rows with a k x n weight has 2 m n k FLOP and reads at least n k elements, so
  // its intensity is at most 2 m / element bytes.
  const auto machine = flop_per_byte(subject);
  const double intensity = 2 * tokens / bytes_of_element(point.dtype);
  if (machine && intensity < *machine) {
    said.severity = *share * (1 - intensity / *machine);
    said.sentence = fmt::format(
        "{:.0f} tokens a microbatch: GEMMs may be bound by memory, not by FLOP", tokens);
    said.evidence.push_back(
        {.what = "intensity at most", .unit = Unit::flop_per_byte, .value = intensity});
    said.evidence.push_back({.what = "GPU", .unit = Unit::flop_per_byte, .value = *machine});
    return said;
  }
  const auto mfu = subject.point.mfu;
  if (*microbatch > 1 || !mfu || !(*mfu < threshold_of(rule, "MFU"))) return std::nullopt;
  said.severity = lost_in_gemms(subject);
  said.sentence = fmt::format("one sample a microbatch at {} MFU: more at once may be faster",
                              units::format_percent(*mfu));
  said.evidence.push_back({.what = "MFU", .value = *mfu});
  return said;
}

Said above_ceiling(const PointSubject& subject, const Rule& rule) {
  const auto mfu = subject.point.mfu;
  const auto* const ceiling =
      calibration::ceiling_of(subject.calibration, subject.point.data->dtype);
  if (!mfu || ceiling == nullptr || !(*mfu > threshold_of(rule, "MFU"))) return std::nullopt;
  return Judgement{
      .size = *mfu - 1,
      .sentence = fmt::format(
          "MFU is {}, above 100%: GEMMs ran faster than the best that this run measured alone",
          units::format_percent(*mfu)),
      .evidence = {{.what = "MFU", .value = *mfu},
                   {.what = "ceiling", .unit = Unit::flop_rate, .value = ceiling->rate}},
      .next_step = "measure the model's own GEMMs beside it: --workload gemm --set shapes=model"};
}

Said throttling(const PointSubject& subject, const Rule& /*rule*/) {
  const PointReport& point = subject.point;
  const devices::UsableSeries usable = devices::usable_series(*point.data);
  const Worst worst = worst_of(usable, devices::warm_up_seconds(*point.data));
  if (worst.series == nullptr) return std::nullopt;
  Judgement said{.size = worst.held.share};
  const std::string more =
      worst.devices > 1 ? fmt::format(" and {} more", worst.devices - 1) : std::string{};
  said.sentence = fmt::format("clocks of {}, {}{} were held down by {}",
                              short_place(subject.run, *point.data, worst.series->rank),
                              worst.series->device, more, worst.held.reason);
  said.evidence = {{.what = "of the samples", .value = worst.held.share}};
  const auto highest = highest_clock(subject, worst.series->rank);
  const auto* const clocks = usable.find(worst.series->rank, worst.series->device, "sm_clock");
  const auto usual = clocks == nullptr ? std::nullopt : statistics::median(clocks->value);
  if (usual) said.evidence.push_back({.what = "SM clock", .unit = Unit::hertz, .value = *usual});
  if (usual && highest) {
    said.evidence.push_back({.what = "highest", .unit = Unit::hertz, .value = *highest});
    const auto share = gemm_share(point);
    if (share) said.severity = std::clamp(*share * (1 - *usual / *highest), 0.0, 1.0);
  }
  said.next_step = worst.held.reason == "software power cap"
                       ? "usual under full load; compare limits: nvidia-smi -q -d POWER"
                       : "cooling and power supply: nvidia-smi -q -d PERFORMANCE,TEMPERATURE";
  return said;
}

Said few_microbatches(const PointSubject& subject, const Rule& rule) {
  const results::PointData& point = *subject.point.data;
  const std::string schedule = option_of(point, "schedule");
  const auto microbatches = count_option(point, "microbatches");
  const std::optional<double> formula = breakdown::formula_bubble(point);
  if (!formula || !microbatches) return std::nullopt;
  const double most = threshold_of(rule, "bubble"), bubble = *formula;
  if (!(bubble > most)) return std::nullopt;
  // The interleaved schedule needs a multiple of pp microbatches.
  const double turn = schedule == "interleaved" ? point.mesh.pp : 1;
  const double enough = std::ceil(microbatches_for(bubble, *microbatches, most) / turn) * turn;
  Judgement said{.severity = bubble};
  said.sentence =
      fmt::format("{:.0f} microbatches on {} stages: the {} schedule alone leaves {} idle",
                  *microbatches, point.mesh.pp, schedule, units::format_percent(bubble));
  said.evidence = {{.what = "schedule's bubble", .value = bubble},
                   {.what = "microbatches", .unit = Unit::count, .value = *microbatches},
                   {.what = "enough", .unit = Unit::count, .value = enough}};
  const auto& breakdown = subject.point.breakdown;
  if (breakdown.mean && breakdown.bubble_known) {
    said.evidence.push_back(
        {.what = "measured bubble", .value = breakdown.mean->bubble / breakdown.mean->step});
  }
  said.next_step =
      fmt::format("--set microbatches={:.0f} leaves {}; or fewer stages: --mesh", enough,
                  units::format_percent(bubble_with(bubble, *microbatches, enough)));
  return said;
}

Said bubble_beyond_schedule(const PointSubject& subject, const Rule& rule) {
  const breakdown::BreakdownResult& breakdown = subject.point.breakdown;
  if (!breakdown.mean || !breakdown.bubble_known || !breakdown.schedule_bubble) {
    return std::nullopt;
  }
  const double step = breakdown.mean->step;
  const double bubble = breakdown.mean->bubble / step;
  const double of_schedule = *breakdown.schedule_bubble / step;
  if (!(bubble - of_schedule > threshold_of(rule, "excess"))) return std::nullopt;
  Judgement said{.severity = bubble - of_schedule};
  said.sentence =
      fmt::format("the bubble is {} of the step, the schedule asks for {}: stages may be unequal",
                  units::format_percent(bubble), units::format_percent(of_schedule));
  said.evidence = {{.what = "measured bubble", .value = bubble},
                   {.what = "schedule's bubble", .value = of_schedule}};
  const bool head = option_of(*subject.point.data, "vocabulary") == "on";
  said.next_step = head ? "--set vocabulary=off shows what the output projection costs"
                        : "compare the stages' compute: breakdown_of_rank in report --format json";
  return said;
}

}  // namespace isoscale::analysis::advice::judges
