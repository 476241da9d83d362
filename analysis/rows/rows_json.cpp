// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/rows/rows_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "analysis/rows/serve.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

Json number(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json{};
}

/// What counts things is a whole number.
Json count(std::optional<double> value) {
  constexpr double most = 9e15;
  if (!value || !std::isfinite(*value) || std::abs(*value) > most) return {};
  if (*value != std::floor(*value)) return *value;
  return static_cast<std::int64_t>(*value);
}

Json text(const std::string& value) { return value.empty() ? Json{} : Json(value); }

Json time_json(const RowReport& row) {
  const auto& time = row.time;
  const auto& p99 = row.p99;
  return {{"median", number(time ? std::optional{time->median} : std::nullopt)},
          {"lower", number(time ? time->lower : std::nullopt)},
          {"upper", number(time ? time->upper : std::nullopt)},
          {"min", number(time ? std::optional{time->minimum} : std::nullopt)},
          {"max", number(time ? std::optional{time->maximum} : std::nullopt)},
          {"p99", number(p99 ? std::optional{p99->value} : std::nullopt)},
          {"p99_lower", number(p99 ? p99->lower : std::nullopt)},
          {"p99_upper", number(p99 ? p99->upper : std::nullopt)},
          {"plays", time ? time->samples : 0},
          {"calls", row.data->calls},
          {"single_calls", row.data->call_times.size()}};
}

Json collective_json(const RowReport& row) {
  const results::RowData& data = *row.data;
  Json object{{"op", text_of(data, "op")}, {"dtype", text(text_of(data, "dtype"))}};
  const std::string in_place = text_of(data, "in_place");
  object["in_place"] = in_place.empty() ? Json{} : Json(in_place == "yes");
  for (const char* key : {"bytes", "count"}) object[key] = count(number_of(data, key));
  object["time"] = time_json(row);
  object["algbw"] = number(row.algbw);
  object["busbw"] = number(row.busbw);
  object["wrong"] = data.wrong ? Json(*data.wrong) : Json{};
  for (const char* key : {"reduction", "implementation", "axis", "groups", "algorithm", "protocol",
                          "registration", "class"}) {
    object[key] = text(text_of(data, key));
  }
  for (const char* key : {"root", "members"}) object[key] = count(number_of(data, key));
  object["estimate"] = number(number_of(data, "estimate"));
  return object;
}

Json gemm_json(const RowReport& row) {
  const results::RowData& data = *row.data;
  Json object{{"op", "gemm"}};
  for (const char* key : {"m", "n", "k", "batch"}) object[key] = count(number_of(data, key));
  object["time"] = time_json(row);
  object["flops"] = number(row.flops);
  for (const char* key : {"dtype", "cache", "origin"}) object[key] = text(text_of(data, key));
  object["flop"] = number(number_of(data, "flop"));
  object["of_ceiling"] = number(row.of_ceiling);
  object["of_peak"] = number(row.of_peak);
  return object;
}

Json moved_json(const RowReport& row) {
  const results::RowData& data = *row.data;
  Json object{{"op", text_of(data, "op")}, {"kind", text(text_of(data, "kind"))}};
  object["bytes"] = count(number_of(data, "bytes"));
  object["bandwidth"] = number(row.bandwidth);
  object["time"] = time_json(row);
  if (text_of(data, "op") == "memory") {
    object["together"] = text(text_of(data, "together"));
    const auto node = number_of(data, "numa");
    object["numa"] = node && *node >= 0 ? count(node) : Json{};
    object["of_peak"] = number(row.of_memory_peak);
  } else {
    object["class"] = text(text_of(data, "class"));
  }
  return object;
}

/// A row of no kind that is known here: as it is.
Json other_json(const RowReport& row) {
  Json object = Json::object();
  for (const auto& [key, value] : row.data->text) object[key] = value;
  for (const auto& [key, value] : row.data->number) object[key] = number(value);
  object["time"] = time_json(row);
  return object;
}

Json pair_json(const PairReport& pair) {
  return {{"op", "p2p"},
          {"src", pair.src},
          {"dst", pair.dst},
          {"class", text(pair.link_class)},
          {"latency", number(pair.latency)},
          {"bandwidth", number(pair.bandwidth)},
          {"bidirectional", number(pair.bidirectional)},
          {"status", pair.failure.empty() ? "ok" : "failed"},
          {"reason", text(pair.failure)}};
}

Json overlap_json(const OverlapReport& at) {
  return {{"op", "overlap"},
          {"collective", text(at.collective)},
          {"dtype", text(at.dtype)},
          {"bytes", count(at.bytes)},
          {"m", count(at.m)},
          {"n", count(at.n)},
          {"k", count(at.k)},
          {"gemm_alone", number(at.gemm)},
          {"collective_alone", number(at.communication)},
          {"together", number(at.together)},
          {"gemm_slowdown", number(at.gemm_slowdown)},
          {"collective_slowdown", number(at.communication_slowdown)},
          {"hidden", number(at.hidden)},
          {"status", at.failure.empty() ? "ok" : "failed"},
          {"reason", text(at.failure)}};
}

bool is_merged(const results::RowData& row) {
  const std::string op = text_of(row, "op"), kind = text_of(row, "kind");
  return op == "overlap" || op == "infer" ||
         (op == "p2p" && (kind == "latency" || kind == "bandwidth" || kind == "bidirectional"));
}

}  // namespace

Json rows_json(const BenchReport& bench) {
  Json rows = Json::array();
  for (const RowReport& row : bench.rows) {
    if (is_merged(*row.data)) continue;
    const std::string op = text_of(*row.data, "op");
    Json object = op == "gemm"                    ? gemm_json(row)
                  : is_collective(op)             ? collective_json(row)
                  : op == "p2p" || op == "memory" ? moved_json(row)
                  : op == "serve"                 ? serve_json(*row.data)
                                                  : other_json(row);
    object["status"] = results::name(row.data->status);
    object["reason"] = text(row.data->reason);
    rows.push_back(std::move(object));
  }
  for (const PairReport& pair : bench.pairs) rows.push_back(pair_json(pair));
  for (const OverlapReport& at : bench.overlaps) rows.push_back(overlap_json(at));
  return rows;
}

Json slow_pairs_json(const BenchReport& bench) {
  Json pairs = Json::array();
  for (const SlowPair& at : bench.slow) {
    pairs.push_back({{"src", at.src},
                     {"dst", at.dst},
                     {"from", at.from},
                     {"to", at.to},
                     {"class", text(at.link_class)},
                     {"quantity", at.quantity},
                     {"value", number(at.value)},
                     {"typical", number(at.typical)}});
  }
  return pairs;
}

Json link_shares_json(const PointReport& point) {
  Json shares = Json::array();
  for (const LinkShare& at : point.link_shares) {
    shares.push_back({{"op", at.op},
                      {"axes", at.axes},
                      {"class", text(at.link_class)},
                      {"alone", number(at.alone)},
                      {"measured", number(at.measured)},
                      {"share", number(at.share)}});
  }
  return shares;
}

}  // namespace isoscale::analysis
