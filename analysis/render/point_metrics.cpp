// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/curve_tables_and_remarks.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "analysis/breakdown/op_and_link_times.hpp"
#include "analysis/curves_and_baselines.hpp"
#include "analysis/render/machine_and_preflight.hpp"
#include "analysis/render/record_json.hpp"
#include "analysis/render/render.hpp"
#include "results/records/point_facts.hpp"
#include "results/records/point_fields.hpp"

namespace isoscale::analysis::render {
namespace {

/// Returns an object with the parts of a breakdown in seconds; a part is null if only a lower bound
/// of it is known.
Json parts_json(const breakdown::BreakdownResult& breakdown, const breakdown::Breakdown& parts) {
  Json object = Json::object();
  for (const Category& category : categories()) {
    object[std::string{category.name}] =
        is_known(breakdown, category.seconds) ? Json(parts.*category.seconds) : Json{};
  }
  object["hidden_communication"] = parts.hidden_communication;
  object["hidden_transfer"] = parts.hidden_transfer;
  return object;
}

/// Returns an object with a breakdown for each entry of `places` (the phases, mesh axes or layers
/// of a step), under the key that `name` gives.
template <class Places, class Name>
Json places_json(const breakdown::BreakdownResult& breakdown, const Places& places,
                 const Name& name) {
  Json object = Json::object();
  for (const auto& [place, parts] : places) {
    object[std::string{name(place)}] = parts_json(breakdown, parts);
  }
  return object;
}

Value by_place(const PointReport& point) {
  const breakdown::BreakdownResult& of = point.breakdown;
  if (!of.mean) return {};
  const auto layer = [](int at) { return at < 0 ? "none" : std::to_string(at); };
  return Json{{"phase", places_json(of, of.by_phase, [](auto at) { return program::name(at); })},
              {"axis", places_json(of, of.by_axes, [](auto at) { return mesh::to_string(at); })},
              {"layer", places_json(of, of.by_layer, layer)}};
}

/// Returns, for each traced rank, its breakdown and the time that other ranks waited for it.
Value traced_ranks(const PointReport& point) {
  Json rows = Json::array();
  const breakdown::BreakdownResult& breakdown = point.breakdown;
  for (std::size_t i = 0; i < breakdown.ranks.size(); ++i) {
    const auto rank = static_cast<std::size_t>(breakdown.ranks[i]);
    Json row{{"rank", breakdown.ranks[i]},
             {"world_rank", world_rank(*point.data, breakdown.ranks[i])},
             {"step", breakdown.of_rank[i].step}};
    row["breakdown"] = parts_json(breakdown, breakdown.of_rank[i]);
    row["caused_wait"] = breakdown.wait_known ? Json(breakdown.caused.of_rank.at(rank)) : Json{};
    rows.push_back(row);
  }
  return rows;
}

Value waterfall_of(const PointReport& point) {
  const std::optional<efficiency::Waterfall>& waterfall = point.causes.waterfall;
  if (!waterfall) return {};
  Json lost = Json::object();
  for (const efficiency::LostTime& at : waterfall->lost) lost[at.cause] = at.seconds;
  return Json{{"ideal", waterfall->ideal},
              {"measured", waterfall->measured},
              {"lost", lost},
              {"missing", waterfall->missing},
              {"explains", waterfall->explains}};
}

Value named_causes(const PointReport& point) {
  return list_json(point.causes.named, [&](const efficiency::NamedCause& at) {
    return Json{{"kind", at.kind},
                {"ranks", at.ranks},
                {"world_ranks", world_ranks(*point.data, at.ranks)},
                {"size", at.size},
                {"text", at.text}};
  });
}

Value largest_unexplained(const PointReport& point) {
  const std::optional<breakdown::LargestUnexplained>& at = point.breakdown.largest;
  if (!at) return {};
  return Json{{"rank", at->rank},     {"world_rank", world_rank(*point.data, at->rank)},
              {"step", at->step},     {"begin", at->begin},
              {"length", at->length}, {"after", at->after}};
}

Value communicators(const PointReport& point) {
  return list_json(point.data->communicators, [](auto& made) { return record_json(made); });
}

/// Returns the results of --soak (see results::Soak); null if no step was replayed.
Value soak_of(const PointReport& point) {
  const results::Soak& soak = point.data->soak;
  if (soak.replays == 0) return {};
  return Json{
      {"replays", soak.replays}, {"seconds", soak.seconds}, {"differing", Json(soak.differing)}};
}

/// Returns the share of the step in which each traced rank computes, in the order of the list
/// breakdown_of_rank.
Value utilisation_of(const PointReport& point) {
  return list_json(point.breakdown.of_rank, [](const breakdown::Breakdown& parts) {
    return parts.step > 0 ? Json(parts.compute / parts.step) : Json{};
  });
}

Value pipeline_of(const PointReport& point) {
  if (!point.pipeline) return {};
  const auto& times = point.pipeline->hand_over;
  Json of_times;
  if (times) {
    of_times = {{"median", times->median}, {"p90", times->p90}, {"messages", times->messages}};
  }
  return Json{{"formula_bubble", number_or_null(point.pipeline->formula_bubble)},
              {"hand_over", of_times}};
}

/// Returns an object for each GEMM shape, with seconds, FLOP and calls of one rank in one step.
Value traced_gemms(const PointReport& point) {
  return list_json(breakdown::gemm_times(*point.data), [](const breakdown::GemmTime& at) {
    return Json{
        {"m", at.shape.m},   {"n", at.shape.n},
        {"k", at.shape.k},   {"batch", at.shape.batch},
        {"calls", at.calls}, {"time", at.seconds},
        {"flop", at.flop},   {"flops", at.seconds > 0 ? Json(at.flop / at.seconds) : Json{}}};
  });
}

Value link_shares(const PointReport& point) {
  return list_json(point.link_shares, [](const breakdown::LinkShare& at) {
    return Json{{"op", at.op},
                {"axes", at.axes},
                {"class", text_or_null(at.link_class)},
                {"alone", number_or_null(at.alone)},
                {"measured", number_or_null(at.measured)},
                {"share", number_or_null(at.share)}};
  });
}

/// Returns [lower, upper]; null if there is no interval.
Json interval_in(const std::optional<statistics::Located>& at) {
  if (!at || !at->lower || !at->upper) return {};
  return Json::array({*at->lower, *at->upper});
}

/// Returns the step time's statistics over steps, or over launches if the point joins several.
Value step_time_of(const PointReport& point) {
  if (point.launch > 0) return time_json(point.step_time, "launches");
  Json time = time_json(point.step_time, "steps");
  time["steps_per_block"] = point.step_time ? point.step_time->block : 1;
  return time;
}

Value breakdown_of(const PointReport& point) {
  Json parts = Json::object();
  for (const Category& category : categories()) {
    const bool known = point.breakdown.mean && is_known(point.breakdown, category.seconds);
    parts[std::string{category.name}] =
        known ? Json(*point.breakdown.mean.*category.seconds) : Json{};
  }
  return parts;
}

/// Returns one part of the breakdown, as the mean over ranks; null without traced steps.
template <double breakdown::Breakdown::*part>
Value mean_of(const PointReport& point) {
  return point.breakdown.mean ? Value((*point.breakdown.mean).*part) : Value();
}

Value pop_of(const PointReport& at) {
  return at.causes.pop ? object_of<efficiency::Pop>(pop_metrics(), *at.causes.pop) : Json{};
}

Value wait_causes(const PointReport& point) {
  const auto& waits = point.breakdown.waits;
  if (!waits) return {};
  return Json{{"imbalance", waits->imbalance}, {"noise", waits->noise}};
}

/// Functions for Metric::value that return a member of the point's record (see `member` and
/// `plain`).
template <auto Member>
constexpr auto stored = member<&PointReport::data, Member>;
template <auto Member>
constexpr auto as_stored = plain<&PointReport::data, Member>;

}  // namespace

Metrics<PointReport> point_metrics() {
  using B = breakdown::BreakdownResult;
  using D = results::PointData;
  using enum Unit;
  using P = PointReport;
  static constexpr Metric<PointReport> all[] = {
      {"index", "point", count, stored<&D::index>},
      {"workload", "workload", text, as_stored<&D::workload>},
      {"model", "model", text, as_stored<&D::model>},
      {"dtype", "type", text, as_stored<&D::dtype>},
      {"scaling", "scaling", text, as_stored<&D::scaling>},
      {"placement", "placement", text, as_stored<&D::placement>},
      {"options", "options", text, as_stored<&D::options>},
      {"mesh", "", text, member<&P::data, &D::mesh, mesh_extents_json>},
      {"ranks", "ranks", count, stored<&D::ranks>},
      {"nodes", "nodes", count, stored<&D::nodes>},
      {"~nodes_used", "nodes", text, member<nodes_text>},
      {"~mesh_text", "mesh", text,
       [](auto& at) { return value_json(mesh::to_string(at.data->mesh)); }},
      {"ranks_per_node", "ranks per node", text,
       [](const PointReport& at) -> Value {
         if (!at.nodes) return {};
         return Json{{"fewest", at.nodes->fewest}, {"most", at.nodes->most}};
       }},
      {"axes", "axes", text,
       [](const PointReport& at) -> Value {
         Json axes = Json::object();
         if (!at.nodes) return axes;
         for (const auto& [axis, reach] : at.nodes->axes) {
           axes[std::string{mesh::name(axis)}] = mesh::name(reach);
         }
         return axes;
       }},
      {"labels", "labels", text, plain<&P::labels>},
      {"status", "status", text, [](auto& at) { return Value(results::name(at.data->status)); }},
      {"reason", "reason", text, stored<&D::reason>},
      {"verified", "verified", text, stored<&D::verified>},
      {"step_time", "step time", seconds, step_time_of,
       "median of untraced steps, each as long as its slowest rank", 0, Keep::value_only},
      {"~step_time_shown", "step time", share,
       [](auto& at) { return value_json(at.step_time ? step_time(at) : ""); }},
      {"~spread", "spread", share, member<merge::spread_of>},
      {"~interval", "±95%", share, member<interval>},
      {"throughput", "throughput", prefixed,
       [](const PointReport& at) -> Value {
         return Json{{"value", number_or_null(at.throughput)},
                     {"unit", text_or_null(at.throughput_unit)}};
       },
       "work of a step over its median time", in_text | in_compare},
      {"speedup", "speed-up", ratio, member<&P::speedup>,
       "throughput over the baseline's, times the baseline's ranks", in_text},
      {"~speedup_shown", "speed-up", factor, member<speedup_of>},
      {"efficiency", "efficiency", share, member<&P::efficiency>,
       "throughput per rank relative to the baseline's"},
      {"~efficiency_shown", "efficiency", share, member<efficiency_of>},
      {"~efficiency_bar", "", text,
       [](auto& at) { return value_json(at.efficiency ? efficiency_bar(*at.efficiency) : ""); }, "",
       0, Keep::drawing},
      {"flop_per_step", "FLOP/step", flop, member<&P::flop_per_step>},
      {"flops_per_rank", "FLOP/s/rank", prefixed, member<&P::flops_per_rank>,
       "mean over ranks, with recomputed FLOP", in_text | in_compare},
      {"mfu", "MFU", share, member<&P::mfu>,
       "the model's FLOP/s, as a share of the best multiplication of this run"},
      {"mfu_of_peak", "of datasheet", share, member<&P::mfu_of_peak>,
       "the model's FLOP/s, as a share of the GPU's peak in its datasheet", in_csv},
      {"memory_per_rank", "memory per rank", bytes, member<&P::memory_per_rank>},
      {"device_memory_per_rank", "device memory", bytes, member<&P::device_memory_per_rank>},
      {"host_memory_per_rank", "host memory", bytes, member<&P::host_memory_per_rank>},
      {"samples_per_second", "samples/s", prefixed, member<&P::samples_per_second>},
      {"work_growth", "growth", ratio, member<&P::work_growth>},
      {"traced_step", "traced step", seconds, member<&P::traced_step>},
      {"breakdown", "", text, breakdown_of},
      {"op_time", "", text, plain<&P::op_time>},
      {"hidden_communication", "hidden communication", seconds,
       mean_of<&breakdown::Breakdown::hidden_communication>},
      {"hidden_transfer", "hidden transfer", seconds,
       mean_of<&breakdown::Breakdown::hidden_transfer>},
      {"communication_ratio", "communication ratio", share, member<&P::communication_ratio>,
       "(transfer + wait + hidden communication) / step"},
      {"instrumentation_overhead", "tracing", share,
       member<&P::instrumentation_overhead, statistics::value_of>},
      {"instrumentation_overhead_interval", "", text,
       member<&P::instrumentation_overhead, interval_in>},
      {"flags", "", text, plain<&P::flags, &statistics::SampleFlags::sentences>},
      {"device_state", "", text, member<device_state_json>},
      {"graph", "", text, as_stored<&D::graph>},
      {"soak", "", text, soak_of},
      {"communicators", "", text, communicators},
      {"link_share", "", text, link_shares},
      {"rows", "", text, member<rows_json>},
      {"slow_pairs", "", text, member<slow_pairs_json>},
      {"breakdown_by", "", text, by_place},
      {"breakdown_missing", "", text, plain<&P::breakdown, &B::missing>},
      {"unaccounted", "unexplained", share,
       [](const PointReport& at) -> Value {
         return at.breakdown.mean ? Json(at.breakdown.unaccounted) : Json{};
       }},
      {"largest_unexplained", "", text, largest_unexplained},
      {"wait_causes", "", text, wait_causes},
      {"clock_error", "clock error", seconds, member<&P::breakdown, &B::clock_error>},
      {"traced_steps", "traced steps", count, plain<&P::breakdown, &B::steps>},
      {"schedule_bubble", "bubble of the schedule", seconds,
       member<&P::breakdown, &B::schedule_bubble>},
      {"utilisation", "", text, utilisation_of},
      {"hidden_copies", "hidden copies", seconds, mean_of<&breakdown::Breakdown::hidden_copies>},
      {"pipeline", "", text, pipeline_of},
      {"traced_gemms", "", text, traced_gemms},
      {"breakdown_of_rank", "", text, traced_ranks},
      {"speedup_interval", "", text, member<&P::speedup_interval, interval_in>},
      {"efficiency_interval", "", text, member<efficiency_interval, interval_in>},
      {"pop", "", text, pop_of},
      {"waterfall", "", text, waterfall_of},
      {"serial_fraction", "Karp-Flatt serial fraction", share,
       member<&P::causes, &efficiency::Causes::serial_fraction>},
      {"findings", "", text, named_causes},
      {"injections", "", text, as_stored<&D::injections>},
  };
  return all;
}

Metrics<efficiency::Pop> pop_metrics() {
  using enum Unit;
  using P = efficiency::Pop;
  static constexpr Metric<efficiency::Pop> all[] = {
      {"global", "global", share, member<&P::global>, "parallel × computation scalability"},
      {"parallel", "├ parallel", share, member<&P::parallel>, "load balance × communication"},
      {"load_balance", "│ ├ load balance", share, member<&P::load_balance>,
       "mean useful time / largest"},
      {"communication", "│ └ communication", share, member<&P::communication>,
       "serialisation × transfer"},
      {"serialisation", "│   ├ serialisation", share, member<&P::serialisation>,
       "largest useful time / step on a network that takes no time"},
      {"transfer", "│   └ transfer", share, member<&P::transfer>, "ideal-network step / step"},
      {"computation_scalability", "└ computation scalability", share,
       member<&P::computation_scalability>, "work × speed, against the baseline"},
      {"work_scalability", "  ├ work (FLOP)", share, member<&P::work_scalability>,
       "FLOP per unit of work, baseline / here"},
      {"speed_scalability", "  └ speed (FLOP/s)", share, member<&P::speed_scalability>,
       "FLOP per useful second, here / baseline"},
  };
  return all;
}

}  // namespace isoscale::analysis::render
