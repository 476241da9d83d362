// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include <optional>
#include <string>

#include "analysis/breakdown/op_times.hpp"
#include "analysis/breakdown/pipeline_report.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/machine.hpp"
#include "analysis/render/render_json.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::render {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the parts of a breakdown; a part is null if only a bound of it is known.
Json parts_json(const breakdown::BreakdownResult& breakdown, const breakdown::Breakdown& parts) {
  Json object = Json::object();
  for (const Category& category : categories()) {
    object[std::string{category.name}] =
        is_known(breakdown, category.seconds) ? Json(parts.*category.seconds) : Json{};
  }
  object["hidden_communication"] = parts.hidden_communication;
  return object;
}

Json by_place_json(const breakdown::BreakdownResult& breakdown) {
  if (!breakdown.mean) return {};
  Json phases = Json::object(), axes = Json::object(), layers = Json::object();
  for (const auto& [phase, parts] : breakdown.by_phase) {
    phases[std::string{program::name(phase)}] = parts_json(breakdown, parts);
  }
  for (const auto& [at, parts] : breakdown.by_axes)
    axes[mesh::to_string(at)] = parts_json(breakdown, parts);
  for (const auto& [layer, parts] : breakdown.by_layer) {
    layers[layer < 0 ? "none" : std::to_string(layer)] = parts_json(breakdown, parts);
  }
  return {{"phase", phases}, {"axis", axes}, {"layer", layers}};
}

/// Returns an object for each traced rank, with the time that other ranks waited for it.
Json ranks_json(const PointReport& point) {
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

Json pop_json(const std::optional<efficiency::Pop>& pop) {
  if (!pop) return {};
  return {{"global", number_or_null(pop->global)},
          {"parallel", pop->parallel},
          {"load_balance", pop->load_balance},
          {"communication", pop->communication},
          {"serialisation", number_or_null(pop->serialisation)},
          {"transfer", number_or_null(pop->transfer)},
          {"computation_scalability", number_or_null(pop->computation_scalability)},
          {"work_scalability", number_or_null(pop->work_scalability)},
          {"speed_scalability", number_or_null(pop->speed_scalability)}};
}

Json waterfall_json(const std::optional<efficiency::Waterfall>& waterfall) {
  if (!waterfall) return {};
  Json lost = Json::object();
  for (const efficiency::LostTime& at : waterfall->lost) lost[at.cause] = at.seconds;
  return {{"ideal", waterfall->ideal},
          {"measured", waterfall->measured},
          {"lost", lost},
          {"missing", waterfall->missing},
          {"explains", waterfall->explains}};
}

Json named_causes_json(const PointReport& point) {
  Json rows = Json::array();
  for (const efficiency::NamedCause& at : point.causes.named) {
    rows.push_back({{"kind", at.kind},
                    {"ranks", at.ranks},
                    {"world_ranks", world_ranks(*point.data, at.ranks)},
                    {"size", at.size},
                    {"text", at.text}});
  }
  return rows;
}

Json largest_json(const PointReport& point) {
  const std::optional<breakdown::LargestUnexplained>& at = point.breakdown.largest;
  if (!at) return {};
  return {{"rank", at->rank},     {"world_rank", world_rank(*point.data, at->rank)},
          {"step", at->step},     {"begin", at->begin},
          {"length", at->length}, {"after", at->after}};
}

Json communicators_json(const results::PointData& data) {
  Json rows = Json::array();
  for (const results::CommunicatorTime& made : data.communicators) {
    rows.push_back({{"name", made.name},
                    {"ranks", made.ranks},
                    {"creation", made.creation},
                    {"first_call", number_or_null(made.first_call)}});
  }
  return rows;
}

/// Returns the result of replaying steps and comparing their bits; null if no step was replayed.
Json soak_json(const results::Soak& soak) {
  if (soak.replays == 0) return nullptr;
  return {
      {"replays", soak.replays}, {"seconds", soak.seconds}, {"differing", Json(soak.differing)}};
}

/// Returns the share of the step in which each traced rank computes, in the order of
/// breakdown_of_rank.
Json utilisation_json(const breakdown::BreakdownResult& breakdown) {
  Json shares = Json::array();
  for (const breakdown::Breakdown& parts : breakdown.of_rank) {
    shares.push_back(parts.step > 0 ? Json(parts.compute / parts.step) : Json{});
  }
  return shares;
}

Json pipeline_json(const std::optional<breakdown::PipelineReport>& pipeline) {
  if (!pipeline) return {};
  Json object{{"formula_bubble", number_or_null(pipeline->formula_bubble)}};
  const auto& times = pipeline->hand_over;
  object["hand_over"] =
      times ? Json{{"median", times->median}, {"p90", times->p90}, {"messages", times->messages}}
            : Json{};
  return object;
}

/// Returns an object for each GEMM shape; seconds, FLOP and calls are those of one rank in one
/// step.
Json traced_gemms_json(const results::PointData& point) {
  Json rows = Json::array();
  for (const breakdown::GemmTime& at : breakdown::gemm_times(point)) {
    rows.push_back({{"m", at.shape.m},
                    {"n", at.shape.n},
                    {"k", at.shape.k},
                    {"batch", at.shape.batch},
                    {"calls", at.calls},
                    {"time", at.seconds},
                    {"flop", at.flop},
                    {"flops", at.seconds > 0 ? Json(at.flop / at.seconds) : Json{}}});
  }
  return rows;
}

}  // namespace

Json interval_json(const std::optional<statistics::Located>& at, double divisor) {
  if (!at || !at->lower || !at->upper) return {};
  return Json::array({*at->lower / divisor, *at->upper / divisor});
}

Json breakdown_json(const PointReport& point) {
  if (point.breakdown.mean) {
    Json parts = parts_json(point.breakdown, *point.breakdown.mean);
    parts.erase("hidden_communication");
    return parts;
  }
  Json parts = Json::object();
  for (const Category& category : categories()) parts[std::string{category.name}] = nullptr;
  return parts;
}

Json hidden_communication_json(const PointReport& point) {
  const auto& mean = point.breakdown.mean;
  return mean ? Json(mean->hidden_communication) : Json{};
}

void add_losses_json(const PointReport& point, Json& object) {
  object["pop"] = pop_json(point.causes.pop);
  object["waterfall"] = waterfall_json(point.causes.waterfall);
  object["serial_fraction"] = located_json(point.causes.serial_fraction);
}

void add_causes_json(const PointReport& point, Json& object) {
  const breakdown::BreakdownResult& breakdown = point.breakdown;
  object["breakdown_by"] = by_place_json(breakdown);
  object["breakdown_missing"] = breakdown.missing;
  object["unaccounted"] = breakdown.mean ? Json(breakdown.unaccounted) : Json{};
  object["largest_unexplained"] = largest_json(point);
  object["wait_causes"] = breakdown.waits ? Json{{"imbalance", breakdown.waits->imbalance},
                                                 {"noise", breakdown.waits->noise}}
                                          : Json{};
  object["clock_error"] = number_or_null(breakdown.clock_error);
  object["traced_steps"] = breakdown.steps;
  object["schedule_bubble"] = number_or_null(breakdown.schedule_bubble);
  object["utilisation"] = utilisation_json(breakdown);
  object["hidden_copies"] = breakdown.mean ? Json(breakdown.mean->hidden_copies) : Json{};
  object["pipeline"] = pipeline_json(point.pipeline);
  object["traced_gemms"] = traced_gemms_json(*point.data);
  object["breakdown_of_rank"] = ranks_json(point);
  object["speedup_interval"] = interval_json(point.speedup_interval);
  // This is the ideal speed-up: the number of ranks, or of nodes.
  const double ideal = point.efficiency ? *point.speedup / *point.efficiency : 1;
  object["efficiency_interval"] = interval_json(point.speedup_interval, ideal);
  add_losses_json(point, object);
  object["findings"] = named_causes_json(point);
  object["injections"] = point.data->injections;
}

Json laws_json(const efficiency::Laws& laws) {
  Json usl;
  if (laws.usl) {
    usl = {{"contention", located_json(std::optional{laws.usl->contention})},
           {"coherency", located_json(std::optional{laws.usl->coherency})},
           {"peak", number_or_null(laws.usl->peak)}};
  }
  return {{"amdahl", located_json(laws.amdahl)},
          {"gustafson", located_json(laws.gustafson)},
          {"usl", usl}};
}

Json point_json(const PointReport& point) {
  const results::PointData& data = *point.data;
  Json object{{"index", data.index}};
  object.update(experiment_head_json(data));
  object.update(Json{
      {"mesh", mesh_extents_json(data.mesh)},
      {"ranks", data.ranks},
      {"nodes", data.nodes},
      {"ranks_per_node", ranks_per_node_json(point)},
      {"axes", axes_json(point)},
      {"labels", point.labels},
      {"status", results::name(data.status)},
      {"reason", text_or_null(data.reason)},
      {"verified", number_or_null(data.verified)},
      {"step_time", time_json(point.step_time, "steps")},
      {"throughput",
       {{"value", number_or_null(point.throughput)}, {"unit", text_or_null(data.throughput_unit)}}},
      {"speedup", number_or_null(point.speedup)},
      {"efficiency", number_or_null(point.efficiency)},
      {"flop_per_step", number_or_null(point.flop_per_step)},
      {"flops_per_rank", number_or_null(point.flops_per_rank)},
      {"mfu", number_or_null(point.mfu)},
      {"memory_per_rank", number_or_null(point.memory_per_rank)},
      {"device_memory_per_rank", number_or_null(point.device_memory_per_rank)},
      {"host_memory_per_rank", number_or_null(point.host_memory_per_rank)},
      {"samples_per_second", number_or_null(point.samples_per_second)},
      {"work_growth", number_or_null(point.work_growth)},
      {"traced_step", number_or_null(point.traced_step)},
      {"breakdown", breakdown_json(point)},
      {"op_time", point.op_time},
      {"hidden_communication", hidden_communication_json(point)},
      {"communication_ratio", number_or_null(point.communication_ratio)},
      {"instrumentation_overhead", number_or_null(value_of(point.instrumentation_overhead))},
      {"instrumentation_overhead_interval", interval_json(point.instrumentation_overhead)},
      {"flags", point.flags.sentences},
      {"device_state", device_state_json(point)},
      {"graph", data.graph},
      {"soak", soak_json(data.soak)},
      {"communicators", communicators_json(data)},
      {"link_share", link_shares_json(point)},
      {"rows", point.bench ? rows_json(point) : Json::array()},
      {"slow_pairs", point.bench ? slow_pairs_json(point) : Json::array()},
  });
  object["step_time"]["steps_per_block"] = point.step_time ? point.step_time->block : 1;
  return object;
}

}  // namespace isoscale::analysis::render
