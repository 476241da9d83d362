// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/curve_tables_and_remarks.hpp"

#include <cmath>
#include <map>
#include <string_view>

#include "analysis/devices/device_state_and_energy.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/render/microbench_tables.hpp"
#include "results/records/measured_step_time.hpp"
#include "results/records/point_facts.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::analysis::render {
namespace {

std::string number_with_interval(const statistics::Located& at) {
  return fmt::format("{:.3g} ({:.3g} to {:.3g})", at.value, at.lower.value_or(at.value),
                     at.upper.value_or(at.value));
}

std::string ranks_prefix(const PointReport& point) {
  return base::counted(point.data->ranks, "rank") + ": ";
}

void add_laws(const Curve& curve, Facts& facts) {
  std::vector<std::string> serial;
  for (const PointReport& point : curve.points) {
    if (!point.causes.serial_fraction) continue;
    serial.push_back(fmt::format(
        "{} on {}", located_text(*point.causes.serial_fraction, Unit::share), point.data->ranks));
  }
  if (!serial.empty()) {
    facts.emplace_back("serial", "Karp-Flatt serial fraction: " + base::listed(serial));
  }
  for (const auto& [name, law] :
       {std::pair{"Amdahl", curve.laws.amdahl}, {"Gustafson", curve.laws.gustafson}}) {
    if (law) facts.emplace_back(name, "serial fraction " + located_text(*law, Unit::share));
  }
  if (curve.laws.usl) {
    const efficiency::Usl& usl = *curve.laws.usl;
    std::string text =
        fmt::format("contention {}, coherency {}", number_with_interval(usl.contention),
                    number_with_interval(usl.coherency));
    if (usl.peak)
      text += fmt::format(", most throughput on {:.0f} times the baseline's ranks", *usl.peak);
    facts.emplace_back("USL", text);
  }
}

std::string unexplained(const PointReport& point) {
  const breakdown::LargestUnexplained& at = *point.breakdown.largest;
  return fmt::format(
      "largest unexplained interval: {} on rank {}, in step {}, {} after the step began{}",
      units::format(units::Seconds{at.length}), world_rank(*point.data, at.rank), at.step,
      units::format(units::Seconds{at.begin}), at.after.empty() ? "" : ", after " + at.after);
}

/// Returns a warning if the traced steps took over 10% more or less time than the untraced steps;
/// otherwise "".
std::string unlike_text(const PointReport& point) {
  constexpr double alike = 0.1;
  if (!point.step_time || !point.breakdown.mean) return "";
  const double traced = point.breakdown.slowest_step, step = point.step_time->median;
  if (std::abs(traced / step - 1) <= alike) return "";
  return fmt::format(
      "traced steps took {}, untraced ones {}: shares and causes are of traced steps",
      units::format(units::Seconds{traced}), units::format(units::Seconds{step}));
}

/// Returns why a step time has no interval; "" when it has one, or when there is no step time.
std::string no_interval(const PointReport& point) {
  if (!point.step_time || point.step_time->lower) return "";
  if (point.step_time->samples < results::fewest_steps)
    return "no interval: fewer than 6 steps count";
  if (point.step_time->block == 1) {
    return "no interval: too few steps count for one that stays valid when checked repeatedly";
  }
  return "no interval: the times of successive steps are correlated, and too few steps count";
}

/// Adds comparisons of the point's rates with those that single operations reached in the same run.
void add_to_calibration(const PointReport& point, Sentences& remarks) {
  std::vector<std::string> mfu;
  if (point.mfu) mfu.push_back(percent(point.mfu) + " of the best multiplication of this run");
  if (point.mfu_of_peak) mfu.push_back(percent(point.mfu_of_peak) + " of the GPU's peak");
  remarks.add("MFU", point, base::listed(mfu));
  std::string text;
  for (const breakdown::LinkShare& at : point.link_shares) {
    text += fmt::format("{}{} on {} ran at {} of the speed that the link reaches alone",
                        text.empty() ? "" : "; ", at.op, at.axes, percent(at.share));
  }
  remarks.add("links", point, text);
}

/// Returns what the steps leave out of a whole training step; "" if nothing.
std::string work_text(const results::PointData& data) {
  std::vector<std::string> parts;
  if (option_of(data, "elementwise") == "off") {
    parts.emplace_back("elementwise ops (elementwise=off)");
  }
  if (option_of(data, "vocabulary") == "off") {
    parts.emplace_back("the vocabulary's GEMMs (vocabulary=off)");
  }
  if (option_of(data, "optimizer") == "sgd") parts.emplace_back("Adam (optimizer=sgd)");
  if (parts.empty()) return "";
  const bool has_elementwise = option_of(data, "elementwise") != "off";
  return (has_elementwise ? "without " : "GEMMs and communication, without ") + base::listed(parts);
}

std::string folded_text(const results::PointData& data) {
  const std::string reason = escape(data.folded_reason);
  return "all streams ran as one" + (reason.empty() ? "" : ": " + reason);
}

/// Returns the result of --soak, which replays a step and compares its bits; "" if no step was
/// replayed.
std::string soak_text(const results::Soak& soak) {
  if (soak.replays == 0) return "";
  const std::string found = soak.differing.empty()
                                ? "all gave the same bits"
                                : fmt::format("{} differ, see WRONG", soak.differing.size());
  return fmt::format("{} replays of one step in {}: {}", soak.replays,
                     units::format(units::Seconds{soak.seconds}), found);
}

constexpr std::size_t most_of_kind = 20;  // limit on the shown lines of one kind

/// Adds the times of setup: the creation of communicators, and the first call in the first row of a
/// micro-benchmark that communicates; in this call, the library sets up connections.
void add_setup(const PointReport& point, Facts& facts) {
  const auto text = [](double seconds) { return units::format(units::Seconds{seconds}); };
  if (point.data->communicator_creation > 0 && point.data->ranks > 1) {
    facts.emplace_back("setup",
                       "communicators created in " + text(point.data->communicator_creation));
  }
  for (const results::CommunicatorTime& made : point.data->communicators) {
    facts.emplace_back(
        "setup", fmt::format("{}: {} ranks, {}{}", escape(made.name), made.ranks,
                             made.creation > 0 ? "created in " + text(made.creation)
                                               : "kept from the previous session",
                             made.first_call ? ", first call " + text(*made.first_call) : ""));
  }
  const auto communicates = [](const microbench::RowReport& row) {
    return row.data->text.contains("in_place") && row.data->number.contains("first_call") &&
           row.time.has_value();
  };
  const auto first = std::ranges::find_if(point.bench->rows, communicates);
  if (first == point.bench->rows.end()) return;
  facts.emplace_back(
      "setup", fmt::format("the very first calls took {} each, later ones {}",
                           text(first->data->number.at("first_call")), text(first->time->median)));
}

void add_pairs(const PointReport& point, Facts& facts) {
  std::vector<std::string> failed, slow;
  for (const microbench::PairReport& pair : point.bench->pairs) {
    if (pair.failure.empty()) continue;
    failed.push_back(fmt::format("rank {} to rank {}: {}", world_rank(*point.data, pair.src),
                                 world_rank(*point.data, pair.dst), escape(pair.failure)));
  }
  for (const microbench::SlowPair& at : point.bench->slow) {
    const std::string pair =
        fmt::format("{} to {} ({})", escape(at.from), escape(at.to), escape(at.link_class));
    slow.push_back(at.quantity == "latency"
                       ? fmt::format("{}: latency {}, {:.3g} times its class's {}", pair,
                                     figure(at.value, Unit::seconds), at.value / at.typical,
                                     figure(at.typical, Unit::seconds))
                       : fmt::format("{}: {} {}, {} of its class's {}", pair, at.quantity,
                                     figure(at.value, Unit::bandwidth), percent(at.share()),
                                     figure(at.typical, Unit::bandwidth)));
  }
  const auto add = [&facts](const char* key, std::vector<std::string> pairs) {
    const std::size_t more = pairs.size() - std::min(pairs.size(), most_of_kind);
    pairs.resize(pairs.size() - more);
    for (std::string& pair : pairs) facts.emplace_back(key, std::move(pair));
    if (more > 0) facts.emplace_back(key, fmt::format("and {} more pairs", more));
  };
  add("failed", std::move(failed));
  add("SLOW", std::move(slow));
}

/// Adds the range of GPU clocks over the rows, the reasons why clocks were lowered, and the number
/// of late repetitions (plays), whose times include the time in which the host launched ops.
void add_gpus(const PointReport& point, Facts& facts) {
  std::vector<double> clocks;
  std::map<std::string_view, std::size_t> held;  // number of rows by reason
  double late = 0;
  for (const microbench::RowReport& row : point.bench->rows) {
    const auto clock = number_of(*row.data, "sm_clock");
    if (clock) clocks.push_back(*clock);
    const auto bits = devices::sampled_bits(number_of(*row.data, "throttle_reasons").value_or(0));
    for (const std::string_view reason : devices::reason_names(bits.value_or(0))) ++held[reason];
    late += number_of(*row.data, "late_plays").value_or(0);
  }
  if (!clocks.empty()) {
    constexpr double mega = 1e6;
    const auto [least, most_of_all] = std::ranges::minmax(clocks);
    facts.emplace_back("clocks", least == most_of_all
                                     ? fmt::format("GPUs at {:.0f} MHz in all rows", least / mega)
                                     : fmt::format("GPUs at {:.0f} to {:.0f} MHz, by row",
                                                   least / mega, most_of_all / mega));
  }
  for (const auto& [reason, rows] : held) {
    facts.emplace_back("clocks",
                       fmt::format("held down in {}: {}", base::counted(rows, "row"), reason));
  }
  if (late > 0) {
    facts.emplace_back("LATE",
                       fmt::format("the times of {:.0f} plays include launches by the host", late));
  }
}

/// Adds the number of rows of element type tf32 for which the GEMM library, which is free to
/// choose, used another arithmetic than TF32.
void add_arithmetic(const PointReport& point, Facts& facts) {
  std::map<std::string, std::size_t> others;  // number of rows by arithmetic
  for (const microbench::RowReport& row : point.bench->rows) {
    const std::string arithmetic = text_of(*row.data, "arithmetic");
    if (text_of(*row.data, "dtype") != "tf32" || arithmetic.empty()) continue;
    if (arithmetic.find("tf32 inputs") == std::string::npos) ++others[arithmetic];
  }
  for (const auto& [arithmetic, rows] : others) {
    facts.emplace_back("NO TF32", fmt::format("{} multiplied with {}", base::counted(rows, "row"),
                                              escape(arithmetic)));
  }
}

/// Adds the reasons why the numbers of a measured point are doubtful, and remarks that explain
/// other numbers.
void add_of_measured(const PointReport& point, Sentences& remarks) {
  const results::PointData& data = *point.data;
  const auto labelled = [&point](std::string_view label, const std::string& sentence) {
    return results::has_label(point.labels, label) ? sentence : "";
  };
  remarks.add("±95%", point, no_interval(point));
  remarks.add("±95%", point, out_of_time(data, point.step_time));
  for (const std::string& sentence : point.flags.sentences) remarks.add("steps", point, sentence);
  remarks.add("tracing", point, overhead_warning(point.instrumentation_overhead));
  remarks.add(
      "label", point,
      labelled("oversubscribed", "oversubscribed: ranks share cores, not a scaling result"));
  const std::string given = base::listed(data.injections);
  remarks.add("label", point,
              labelled("injected", "injected: " + (given.empty() ? "faults" : escape(given))));
  remarks.add("label", point, few_steps_text(point));
  remarks.add(
      "label", point,
      labelled("not-closed", fmt::format("not-closed: nothing explains {} of the traced time",
                                         percent(point.breakdown.unaccounted))));
  remarks.add("traces", point, escape(point.breakdown.missing));
  if (data.folded) remarks.add("streams", point, folded_text(data));
  if (data.graph == "on") remarks.add("graph", point, "steps replayed as one captured graph");
  if (const auto cast = point.op_time.find("cast"); cast != point.op_time.end()) {
    remarks.add(
        "casts", point,
        percent(cast->second / *point.traced_step) + " of the step goes into casts and transposes");
  }
  add_to_calibration(point, remarks);
}

/// Adds the ratio of the model's size at this point to its size on one rank, and the host memory
/// per rank.
void add_model(const PointReport& point, Sentences& remarks) {
  remarks.add("scaled", point, growth_text(point.work_growth));
  if (point.host_memory_per_rank.value_or(0) > 0) {
    remarks.add("memory", point,
                fmt::format("{} per rank in pinned and pageable host buffers, {} in all others",
                            value_text(*point.host_memory_per_rank, Unit::bytes),
                            value_text(*point.device_memory_per_rank, Unit::bytes)));
  }
}

}  // namespace

Facts cause_remarks(const Curve& curve) {
  Facts facts;
  Sentences said{{"lost", "clocks", "traces"}};
  for (const PointReport& point : curve.points) {
    for (const efficiency::NamedCause& cause : point.causes.named) {
      facts.emplace_back("cause", ranks_prefix(point) + escape(cause.text));
    }
    if (results::has_label(point.labels, "not-closed") && point.breakdown.largest) {
      facts.emplace_back("other", ranks_prefix(point) + unexplained(point));
    }
    if (const auto& waterfall = point.causes.waterfall) {
      for (const std::string& sentence : waterfall->missing) said.add("lost", point, sentence);
      if (!waterfall->explains) {
        said.add("lost", point,
                 "no shares of causes: few steps count, or traced steps differ by over 10% of "
                 "the step");
      }
    }
    if (point.breakdown.clock_error.value_or(0) > 0) {
      said.add("clocks", point,
               fmt::format("aligned to within {}; shorter waits are not counted",
                           units::format(units::Seconds{*point.breakdown.clock_error})));
    }
    said.add("traces", point, unlike_text(point));
  }
  said.append_to(facts);
  add_laws(curve, facts);
  return facts;
}

Facts all_skipped(const Curve& curve) {
  Sentences reasons{{"skipped"}};
  for (const PointReport& point : curve.points) {
    if (point.data->status != results::PointStatus::skipped) return {};
    const std::string reason = escape(point.data->reason);
    reasons.add("skipped", point, reason.empty() ? "no reason was recorded" : reason);
  }
  Facts facts;
  reasons.append_to(facts);
  return facts;
}

Facts remarks(const Curve& curve) {
  Sentences first{{"axes", "work"}};
  Sentences models{{"scaled", "memory"}};
  Sentences rest{{"WRONG", "soak", "±95%", "steps", "tracing", "label", "streams", "graph", "casts",
                  "MFU", "links", "traces"}};
  std::vector<int> verified;
  std::vector<std::string> rates;
  for (const PointReport& point : curve.points) {
    const results::PointData& data = *point.data;
    if (data.verified == true) verified.push_back(data.ranks);
    if (data.verified == false) {
      rest.add("WRONG", point, "the results do not verify: " + escape(data.verification));
    }
    rest.add("soak", point, soak_text(data.soak));
    if (results::has_label(point.labels, "shared-gpu")) {
      rest.add("label", point, "shared-gpu: ranks share a GPU, so only correctness counts");
    }
    if (data.status == results::PointStatus::ok) {
      first.add("axes", point, axes_text(point));
      first.add("work", point, work_text(data));
      add_of_measured(point, rest);
      add_model(point, models);
    }
    if (point.samples_per_second && data.status == results::PointStatus::ok) {
      rates.push_back(fmt::format("{} on {}", value_text(*point.samples_per_second, Unit::prefixed),
                                  base::counted(data.ranks, "rank")));
    }
  }
  Facts facts = baseline_remark(curve);
  first.append_to(facts);
  if (!rates.empty()) facts.emplace_back("samples/s", base::listed(rates));
  models.append_to(facts);
  if (!verified.empty()) facts.emplace_back("verified", base::counted(verified, "rank"));
  rest.append_to(facts);
  append(facts, cause_remarks(curve));
  return facts;
}

Facts bench_remarks(const PointReport& point) {
  Facts facts;
  if (!point.bench) return facts;
  for (const std::string& label : point.labels) facts.emplace_back("label", escape(label));
  if (point.data->folded) facts.emplace_back("streams", folded_text(*point.data));
  add_setup(point, facts);
  if (point.data->verified) {
    const std::string found = escape(point.data->verification);
    facts.emplace_back(*point.data->verified ? "verified" : "WRONG",
                       found.empty() ? "all results are as expected" : found);
  }
  const auto wrong = std::ranges::count_if(point.bench->rows, [](const microbench::RowReport& row) {
    return row.data->wrong.value_or(0) > 0;
  });
  if (wrong > 0) {
    facts.emplace_back("WRONG", fmt::format("{} with wrong elements", base::counted(wrong, "row")));
  }
  add_gpus(point, facts);
  add_arithmetic(point, facts);
  add_pairs(point, facts);
  return facts;
}

}  // namespace isoscale::analysis::render
