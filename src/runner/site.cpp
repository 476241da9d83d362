// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/site.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace isoscale::runner {
namespace {

using nlohmann::json;

template <class Value>
void put(json& object, const char* key, const std::optional<Value>& value) {
  if (value) object[key] = *value;
}

void put(json& object, const char* key, const std::optional<units::Bytes>& value) {
  if (value) object[key] = value->value();
}

template <class Value>
std::optional<Value> get(const json& object, const char* key) {
  if (!object.contains(key)) return std::nullopt;
  return object.at(key).get<Value>();
}

std::optional<units::Bytes> get_bytes(const json& object, const char* key) {
  const auto value = get<std::uint64_t>(object, key);
  return value ? std::optional{units::Bytes{*value}} : std::nullopt;
}

std::string to_text(const system::MachineFacts& facts) {
  json object{
      {"host", facts.host}, {"bound_cpus", facts.bound_cpus}, {"bound_cores", facts.bound_cores}};
  put(object, "cpu_model", facts.cpu_model);
  put(object, "sockets", facts.sockets);
  put(object, "cores", facts.cores);
  put(object, "numa_nodes", facts.numa_nodes);
  put(object, "memory_total", facts.memory_total);
  put(object, "memory_available", facts.memory_available);
  put(object, "os", facts.os);
  put(object, "cpu_quota", facts.cpu_quota);
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

system::MachineFacts from_text(const std::string& text) {
  const json object = json::parse(text);
  return {.host = object.at("host").get<std::string>(),
          .cpu_model = get<std::string>(object, "cpu_model"),
          .sockets = get<int>(object, "sockets"),
          .cores = get<int>(object, "cores"),
          .numa_nodes = get<int>(object, "numa_nodes"),
          .memory_total = get_bytes(object, "memory_total"),
          .memory_available = get_bytes(object, "memory_available"),
          .bound_cpus = object.at("bound_cpus").get<std::vector<int>>(),
          .bound_cores = object.at("bound_cores").get<int>(),
          .os = get<std::string>(object, "os"),
          .cpu_quota = get<std::string>(object, "cpu_quota")};
}

/// Whether each rank of one node can have a logical CPU of its own (augmenting paths).
bool can_spread(const std::vector<const system::MachineFacts*>& ranks) {
  std::map<int, std::size_t> owner;  // of a CPU
  std::set<int> visited;
  const std::function<bool(std::size_t)> find_cpu = [&](std::size_t rank) {
    for (const int cpu : ranks[rank]->bound_cpus) {
      if (!visited.insert(cpu).second) continue;
      const auto taken = owner.find(cpu);
      if (taken == owner.end() || find_cpu(taken->second)) {
        owner[cpu] = rank;
        return true;
      }
    }
    return false;
  };
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    visited.clear();
    if (!find_cpu(rank)) return false;
  }
  return true;
}

}  // namespace

std::vector<system::MachineFacts> gather_facts(const comm::Communicator& world) {
  const std::vector<std::string> texts = world.gather(to_text(system::machine_facts()));
  json all = json::array();
  for (const std::string& text : texts) all.push_back(text);
  const json everywhere = json::parse(world.broadcast(all.dump()));
  std::vector<system::MachineFacts> facts;
  for (const json& text : everywhere) facts.push_back(from_text(text.get<std::string>()));
  return facts;
}

bool share_cores(std::span<const int> ranks, std::span<const system::MachineFacts> facts,
                 std::span<const int> node_of_rank) {
  std::map<int, std::vector<const system::MachineFacts*>> of_node;
  for (const int rank : ranks) {
    const auto r = static_cast<std::size_t>(rank);
    of_node[node_of_rank[r]].push_back(&facts[r]);
  }
  return std::any_of(of_node.begin(), of_node.end(), [](const auto& node) {
    const auto& members = node.second;
    const bool too_many =
        members.front()->cores && static_cast<int>(members.size()) > *members.front()->cores;
    return too_many || !can_spread(members);
  });
}

Site make_site(const comm::Communicator& world, const executor::Executor& executor,
               std::span<const system::MachineFacts> facts) {
  const executor::Description& device = executor.describe();
  Site site{.ranks = world.size(),
            .node_of_rank = comm::node_of_rank(world),
            .precisions = device.precisions,
            .device = device.name,
            .memory_free = {},
            .oversubscribed = false};
  // The least of all ranks; unknown when one does not know.
  const double unknown = -1;
  const double least = world.all_min(
      device.memory_free ? static_cast<double>(device.memory_free->value()) : unknown);
  if (least != unknown) site.memory_free = units::Bytes{static_cast<std::uint64_t>(least)};
  std::vector<int> everyone(static_cast<std::size_t>(world.size()));
  for (std::size_t r = 0; r < everyone.size(); ++r) everyone[r] = static_cast<int>(r);
  site.oversubscribed = share_cores(everyone, facts, site.node_of_rank);
  return site;
}

std::vector<results::RankFacts> rank_facts(std::span<const system::MachineFacts> facts,
                                           std::span<const int> node_of_rank) {
  std::vector<results::RankFacts> result;
  for (std::size_t r = 0; r < facts.size(); ++r) {
    const system::MachineFacts& machine = facts[r];
    results::RankFacts& entry = result.emplace_back(results::RankFacts{.rank = static_cast<int>(r),
                                                                       .host = machine.host,
                                                                       .node = node_of_rank[r],
                                                                       .text = {},
                                                                       .number = {}});
    const auto text = [&](const char* key, const std::optional<std::string>& value) {
      if (value) entry.text[key] = *value;
    };
    const auto number = [&](const char* key, const auto& value) {
      if (value) entry.number[key] = static_cast<double>(*value);
    };
    text("cpu_model", machine.cpu_model);
    text("os", machine.os);
    text("cpu_quota", machine.cpu_quota);
    entry.text["bound_cpus"] = fmt::format("{}", fmt::join(machine.bound_cpus, ","));
    entry.number["bound_cores"] = machine.bound_cores;
    number("sockets", machine.sockets);
    number("cores", machine.cores);
    number("numa_nodes", machine.numa_nodes);
    if (machine.memory_total) {
      entry.number["memory_total"] = static_cast<double>(machine.memory_total->value());
    }
  }
  return result;
}

}  // namespace isoscale::runner
