// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>

#include "analysis/advice/rules.hpp"
#include "analysis/breakdown/op_and_link_times.hpp"
#include "analysis/devices/device_state_and_energy.hpp"
#include "analysis/microbench/microbench_report.hpp"
#include "calibration/fit_calibration.hpp"
#include "results/records/point_facts.hpp"
#include "units/quantity_text.hpp"

/// Implements the rules about GEMMs and their sizes, clocks, and the bubble of pipelines.
namespace isoscale::analysis::advice {
namespace {

using program::OpKind;
using results::PointData;

struct GemmSums {
  double flop = 0, seconds = 0;
  std::size_t count = 0;
};

/// Adds a rank's GEMMs to `sums`, with times from steps without communication (solo times).
void add_alone(const PointData& point, const results::SoloTimes& solo, GemmSums& sums) {
  if (solo.rank < 0 || solo.rank >= point.ranks) return;
  const auto& ops = point.outline.of(solo.rank).ops;
  if (ops.size() != solo.op.size()) return;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != OpKind::gemm) continue;
    sums.flop += ops[i].flop;
    sums.seconds += units::to_seconds(solo.op[i]).value();
    ++sums.count;
  }
}

/// Adds up the GEMMs of all ranks in one traced step; their seconds are means over traced steps.
GemmSums traced_gemms(const PointReport& report) {
  const PointData& point = *report.data;
  const auto seconds = report.op_time.find("gemm");
  if (seconds == report.op_time.end() || point.outline.outlines.empty()) return {};
  GemmSums sums{.seconds = seconds->second * point.ranks};
  for (int rank = 0; rank < point.ranks; ++rank) {
    for (const program::OutlineOp& op : point.outline.of(rank).ops) {
      if (op.kind != OpKind::gemm) continue;
      sums.flop += op.flop;
      ++sums.count;
    }
  }
  return sums;
}

/// Returns the share of the traced step that GEMMs take on an average rank; absent without traced
/// GEMMs.
std::optional<double> gemm_share(const PointReport& point) {
  const auto gemm = point.op_time.find("gemm");
  if (gemm == point.op_time.end() || !point.breakdown.mean) return std::nullopt;
  return gemm->second / point.breakdown.mean->step;
}

/// The speed of a point's GEMMs.
struct GemmSpeed {
  double rate = 0;         ///< FLOP/s of one rank
  double flop_of_one = 0;  ///< mean FLOP of one GEMM
  bool alone = false;      ///< measured without communication (solo times), not in traced steps
};
/// Returns the speed of the GEMMs over all ranks whose GEMMs were also timed without communication
/// (solo times), or over the traced steps if there is no such rank. Absent without a breakdown or
/// without GEMMs.
std::optional<GemmSpeed> gemm_speed(const PointReport& report) {
  // If there is no breakdown, the spans were not checked, so the times of GEMMs are not reliable.
  if (!report.breakdown.mean) return std::nullopt;
  GemmSums sums;
  for (const results::SoloTimes& solo : report.data->solo_times) {
    add_alone(*report.data, solo, sums);
  }
  const bool alone = sums.seconds > 0;
  if (!alone) sums = traced_gemms(report);
  if (!(sums.seconds > 0) || !(sums.flop > 0)) return std::nullopt;
  return GemmSpeed{.rate = sums.flop / sums.seconds,
                   .flop_of_one = sums.flop / static_cast<double>(sums.count),
                   .alone = alone};
}

/// Returns the rate that the calibration measured for the GEMM whose FLOP count is nearest to
/// `flop`, among GEMMs with the ceiling's element type and cache state; absent if there are none.
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
  const auto microbatch = results::count_in(point.options, "microbatch");
  const std::string first =
      microbatch ? fmt::format("use a larger --set microbatch (now {:.0f})", *microbatch)
                 : std::string{"use a larger microbatch"};
  return point.mesh.tp > 1 ? first + ", or less tp: --mesh" : first + ", or a larger model";
}

/// Returns peak FLOP/s divided by memory bandwidth in the GPU's datasheet; absent if not known.
std::optional<double> flop_per_byte(const PointSubject& subject) {
  const results::RankFacts* const facts = facts_of(subject.run.rank_facts, *subject.point.data, 0);
  const microbench::Datasheet* const sheet =
      facts == nullptr ? nullptr : microbench::datasheet_of(*facts);
  if (sheet == nullptr || !sheet->memory) return std::nullopt;
  const auto peak = sheet->peak(subject.point.data->dtype);
  return peak ? std::optional{*peak / *sheet->memory} : std::nullopt;
}

double bytes_of_element(const std::string& dtype) { return dtype == "fp8" ? 1 : 2; }

/// Returns the best GEMM rate measured for the point's element type; null if none is above 0.
const results::GemmCeiling* ceiling_of(const PointSubject& subject) {
  const auto* const ceiling =
      calibration::ceiling_of(subject.calibration, subject.point.data->dtype);
  return ceiling != nullptr && ceiling->rate > 0 ? ceiling : nullptr;
}

/// Returns the share of the step that would be saved if GEMMs, which take `share` of it, ran at
/// `rate` instead of their measured rate.
double saved_at(double rate, const GemmSpeed& speed, double share) {
  return std::clamp(share * (1 - speed.rate / rate), 0.0, 1.0);
}

/// The most frequent throttle reason over all devices.
struct Worst {
  const results::DeviceSeries* series = nullptr;
  devices::HeldDown held{};
  std::size_t devices = 0;  ///< number of devices with any reason
};

constexpr std::string_view power_cap = "software power cap";

/// Returns the median clock of the device that has these reasons; absent if it was not sampled.
std::optional<double> clock_beside(const devices::UsableSeries& usable,
                                   const results::DeviceSeries& reasons) {
  const auto* const clock = usable.find(reasons.rank, reasons.device, "sm_clock");
  return clock == nullptr ? std::nullopt : statistics::median(clock->value);
}

/// Returns the device whose clocks were held down most: the one that has a reason in the largest
/// share of samples or, among devices with a power cap, the one with the lowest clock.
Worst worst_of(const devices::UsableSeries& usable, double begin) {
  Worst worst;
  for (const results::DeviceSeries* const series : usable.series) {
    if (series->quantity != "throttle_reasons") continue;
    const auto all = devices::held_down(*series, begin);
    if (!all.empty()) ++worst.devices;
    for (const devices::HeldDown& held : all) {
      if (worst.series != nullptr) {
        const bool are_caps = held.reason == power_cap && worst.held.reason == power_cap;
        const auto clock = clock_beside(usable, *series);
        const auto other = clock_beside(usable, *worst.series);
        const bool is_worse =
            are_caps && clock && other ? *clock < *other : held.share > worst.held.share;
        if (!is_worse) continue;
      }
      worst.series = series;
      worst.held = held;
    }
  }
  return worst;
}

/// Returns the smallest number of microbatches with which the bubble is at most `share` of the
/// step. With `microbatches` of them, it is `bubble` of the step. The idle time does not depend on
/// the number m of microbatches, so idle / work is proportional to 1 / m.
double microbatches_for(double bubble, double microbatches, double share) {
  constexpr double rounding = 1e-9;
  const double idle = bubble / (1 - bubble) * microbatches;
  return std::ceil(idle * (1 - share) / share - rounding);
}

double bubble_with(double bubble, double microbatches, double enough) {
  const double idle = bubble / (1 - bubble) * microbatches / enough;
  return idle / (1 + idle);
}

Said small_gemms(const PointSubject& subject, const Rule& rule) {
  const auto speed = gemm_speed(subject.point);
  const auto share = gemm_share(subject.point);
  if (!speed || !share || !(*share > rule.limit("GEMMs"))) return std::nullopt;
  Finding said;
  said.add(speed->alone ? "rate alone" : "rate as traced", speed->rate, Unit::flop_rate);
  said.add("FLOP of a GEMM", speed->flop_of_one, Unit::flop);
  said.add("GEMMs' share of the step", *share);
  said.next_step = larger_gemms(*subject.point.data);
  const auto* const ceiling = ceiling_of(subject);
  if (ceiling == nullptr) {
    if (subject.run.device != "cuda" || speed->flop_of_one >= rule.limit("a GEMM")) {
      return std::nullopt;
    }
    said.sentence = fmt::format("GEMMs of {} on average may be too small for the GPU",
                                units::format(units::Flops{speed->flop_of_one}));
    return said;
  }
  const double reached = speed->rate / ceiling->rate;
  const auto here = rate_at(subject.calibration, *ceiling, speed->flop_of_one);
  // If the calibration was fast at this size, the size does not cause the low rate.
  const bool can_be_fast = here && *here > rule.limit("ceiling at this size") * ceiling->rate;
  if (!(reached < rule.limit("of the ceiling")) || can_be_fast) return std::nullopt;
  said.sentence = fmt::format("GEMMs reach {} of the measured ceiling", percent(reached));
  said.add("ceiling", ceiling->rate, Unit::flop_rate);
  if (!here) {
    said.size = saved_at(ceiling->rate, *speed, *share);
    said.sentence += ": they may be too small";
    return said;
  }
  // GEMMs of this size cannot exceed the rate that the calibration reached at the same size, so
  // only the difference from that rate counts as a loss.
  said.severity = saved_at(*here, *speed, *share);
  said.sentence += fmt::format(" and {} of what calibration reached at their size",
                               percent(speed->rate / *here));
  said.add("calibration at this size", *here, Unit::flop_rate);
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
  if (!(share > rule.limit("lost"))) return std::nullopt;
  Finding said{.severity = std::min(share, 1.0)};
  said.sentence = fmt::format(
      "GEMMs are slower than with ideal scaling, which costs {} of the step", percent(share));
  said.add("lost", lost->seconds, Unit::seconds);
  said.add("step", waterfall->measured, Unit::seconds);
  if (point.causes.pop && point.causes.pop->speed_scalability) {
    said.add("FLOP/s against the baseline", *point.causes.pop->speed_scalability);
  }
  said.next_step =
      point.data->mesh.tp > 1 ? "tp may make them too narrow: " + larger_gemms(*point.data)
      : subject.run.device == "host"
          ? "ranks may share memory, caches and clocks: measure with --workload memory,gemm"
          : "shapes may be smaller, or clocks lower, on more GPUs: measure with --workload gemm";
  return said;
}

Said small_microbatch(const PointSubject& subject, const Rule& rule) {
  const PointData& point = *subject.point.data;
  const auto microbatch = results::count_in(point.options, "microbatch");
  const auto sequence = results::count_in(point.model_shape, "sequence");
  const auto share = gemm_share(subject.point);
  if (!microbatch || !sequence || !share || !(*share > rule.limit("GEMMs"))) return std::nullopt;
  const double tokens = *microbatch * *sequence / point.mesh.cp;
  Finding said;
  said.add("microbatch", *microbatch, Unit::count);
  said.add("tokens of a microbatch", tokens, Unit::count);
  said.next_step = fmt::format(
      "use a larger --set microbatch (now {:.0f}), as far as memory allows", *microbatch);
  // A product of m rows with a k x n weight has 2 m n k FLOP and reads at least n k elements, so
  // its intensity is at most 2 m / element bytes.
  const auto machine = flop_per_byte(subject);
  const double intensity = 2 * tokens / bytes_of_element(point.dtype);
  if (machine && intensity < *machine) {
    said.severity = *share * (1 - intensity / *machine);
    said.sentence = fmt::format(
        "{:.0f} tokens per microbatch: GEMMs may be bound by memory, not by FLOP", tokens);
    said.add("intensity at most", intensity, Unit::flop_per_byte);
    said.add("GPU", *machine, Unit::flop_per_byte);
    return said;
  }
  const auto mfu = subject.point.mfu;
  if (*microbatch > 1 || !mfu || !(*mfu < rule.limit("MFU"))) return std::nullopt;
  const auto* const ceiling = ceiling_of(subject);
  const auto speed = gemm_speed(subject.point);
  if (ceiling != nullptr && speed) said.severity = saved_at(ceiling->rate, *speed, *share);
  said.sentence =
      fmt::format("one sample per microbatch, at {} MFU: more may be faster", percent(*mfu));
  said.add("MFU", *mfu);
  return said;
}

/// Returns the median over the point's GPUs of their usual SM clocks (medians over time), in Hz.
std::optional<double> usual_clock(const devices::UsableSeries& usable) {
  std::vector<double> clocks;
  for (const results::DeviceSeries* const series : usable.series) {
    if (series->quantity != "sm_clock") continue;
    if (const auto clock = statistics::median(series->value)) clocks.push_back(*clock);
  }
  return statistics::median(clocks);
}

Said throttling(const PointSubject& subject, const Rule& rule) {
  const PointReport& point = subject.point;
  const devices::UsableSeries usable = devices::usable_series(*point.data);
  const Worst worst = worst_of(usable, devices::warm_up_seconds(*point.data));
  if (worst.series == nullptr) return std::nullopt;
  const bool is_power = worst.held.reason == power_cap;
  Finding said{.size = worst.held.share};
  const std::string more =
      worst.devices > 1 ? fmt::format(" and {} more", worst.devices - 1) : std::string{};
  said.sentence = fmt::format("clocks of {}, {}{} were held down by {}",
                              short_place(subject.run, *point.data, worst.series->rank),
                              worst.series->device, more, worst.held.reason);
  said.add("share of samples", worst.held.share);
  const auto* const facts = facts_of(subject.run.rank_facts, *point.data, worst.series->rank);
  const auto highest = facts == nullptr ? std::nullopt : number_of(*facts, "gpu_sm_clock_max");
  const std::optional<double> usual = clock_beside(usable, *worst.series);
  if (usual) said.add("SM clock", *usual, Unit::hertz);
  if (usual && highest.value_or(0) > 0) {
    said.add("highest", *highest, Unit::hertz);
    const auto share = gemm_share(point);
    // GPUs under full load run at their power limit. Only one that is slower than the others loses.
    const bool is_usual =
        is_power && *usual > rule.limit("clock of others") * usual_clock(usable).value_or(0);
    if (share && !is_usual) said.severity = std::clamp(*share * (1 - *usual / *highest), 0.0, 1.0);
  }
  said.next_step = "check cooling and power supply: nvidia-smi -q -d PERFORMANCE,TEMPERATURE";
  if (is_power) {
    said.next_step = "this is usual under full load; compare limits: nvidia-smi -q -d POWER";
  }
  if (worst.held.reason == "clock settings") {
    said.next_step = "reset the clocks if nobody wants them so: nvidia-smi -rac, nvidia-smi -rgc";
  }
  return said;
}

Said few_microbatches(const PointSubject& subject, const Rule& rule) {
  const results::PointData& point = *subject.point.data;
  const std::string schedule = option_of(point, "schedule");
  const auto microbatches = results::count_in(point.options, "microbatches");
  const std::optional<double> formula = breakdown::formula_bubble(point);
  if (!formula || !microbatches) return std::nullopt;
  const double most = rule.limit("bubble"), bubble = *formula;
  if (!(bubble > most)) return std::nullopt;
  // The interleaved schedule needs a multiple of pp microbatches.
  const double turn = schedule == "interleaved" ? point.mesh.pp : 1;
  const double enough = std::ceil(microbatches_for(bubble, *microbatches, most) / turn) * turn;
  Finding said{.severity = bubble};
  said.sentence =
      fmt::format("{:.0f} microbatches on {} stages: the {} schedule alone leaves {} idle",
                  *microbatches, point.mesh.pp, schedule, percent(bubble));
  said.add("schedule's bubble", bubble);
  said.add("microbatches", *microbatches, Unit::count);
  said.add("microbatches needed", enough, Unit::count);
  const auto& breakdown = subject.point.breakdown;
  if (breakdown.mean && breakdown.bubble_known) {
    said.add("measured bubble", breakdown.mean->bubble / breakdown.mean->step);
  }
  said.next_step = fmt::format("--set microbatches={:.0f} leaves {} idle; or fewer stages: --mesh",
                               enough, percent(bubble_with(bubble, *microbatches, enough)));
  return said;
}

Said bubble_beyond_schedule(const PointSubject& subject, const Rule& rule) {
  const breakdown::BreakdownResult& breakdown = subject.point.breakdown;
  if (!breakdown.mean || !breakdown.bubble_known || !breakdown.schedule_bubble) return std::nullopt;
  const double step = breakdown.mean->step;
  const double bubble = breakdown.mean->bubble / step;
  const double of_schedule = *breakdown.schedule_bubble / step;
  if (!(bubble - of_schedule > rule.limit("excess"))) return std::nullopt;
  Finding said{.severity = bubble - of_schedule};
  said.sentence =
      fmt::format("the bubble is {} of the step, the schedule explains {}: stages may be unequal",
                  percent(bubble), percent(of_schedule));
  said.add("measured bubble", bubble);
  said.add("schedule's bubble", of_schedule);
  const bool head = option_of(*subject.point.data, "vocabulary") == "on";
  said.next_step = head ? "see what the output projection costs: --set vocabulary=off"
                        : "compare the stages' compute: breakdown_of_rank in report --format json";
  return said;
}

constexpr Rule compute_table[] = {
    {.name = "small-gemms",
     .source = "NVIDIA Matrix Multiplication Background guide; Calculon (SC23), GEMM efficiency by "
               "size",
     .thresholds = {{{"of the ceiling", 0.5},
                     {"ceiling at this size", 0.8},
                     {"a GEMM", 1e9, Unit::flop},
                     {"GEMMs", 0.2}}},
     .judge_point = small_gemms},
    {.name = "slower-gemms",
     .source = "POP CoE metrics, computation scalability; docs/breakdown.md",
     .thresholds = {{{"lost", 0.10}}},
     .judge_point = slower_gemms},
    {.name = "small-microbatch",
     .source = "Megatron-LM, SC21 (arXiv 2104.04473), table 1; NVIDIA Matrix Multiplication "
               "Background guide",
     .thresholds = {{{"MFU", 0.30}, {"GEMMs", 0.2}}},
     .instead_of = "small-gemms",
     .judge_point = small_microbatch},
    {.name = "throttling",
     .source = "NVML clock event reasons, docs/device-state.md",
     .thresholds = {{{"clock of others", 0.95}}},
     .scope = Scope::faults,
     .concern = Concern::hardware,
     .judge_point = throttling},
    {.name = "few-microbatches",
     .source = "Megatron-LM, SC21 (arXiv 2104.04473)",
     .thresholds = {{{"bubble", 0.10}}},
     .judge_point = few_microbatches},
    {.name = "bubble-beyond-schedule",
     .source = "Megatron-LM, SC21 (arXiv 2104.04473), docs/breakdown.md",
     .thresholds = {{{"excess", 0.05}}},
     .judge_point = bubble_beyond_schedule},
};

}  // namespace

std::span<const Rule> compute_rules() { return compute_table; }

}  // namespace isoscale::analysis::advice
