// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <type_traits>

#include "analysis/catalog/index.hpp"
#include "base/error.hpp"

namespace isoscale::analysis {
namespace {

using nlohmann::json;

/// Visits the fields of a structure in a fixed order, the same for writing and for reading. A field
/// that is added to a structure without being listed here is a compile error.
template <class Visit, class... Fields>
void visit_each(Visit& visit, Fields&... fields) {
  (visit(fields), ...);
}

template <class Visit, class Of>
void visit_what(Visit& visit, Of& of) {
  auto& [workload, model, dtype, scaling, placement, options, numbers, settings] = of;
  visit_each(visit, workload, model, dtype, scaling, placement, options, numbers, settings);
}

template <class Visit, class Of>
void visit_experiment(Visit& visit, Of& of) {
  auto& [experiment, fingerprint, is_bench, ok, failed, skipped, ranks, nodes, throughput,
         efficiency, unit, baseline, verified, labels, counts] = of;
  visit_what(visit, experiment);
  visit_each(visit, fingerprint, is_bench, ok, failed, skipped, ranks, nodes, throughput,
             efficiency, unit, baseline, verified, labels, counts);
}

template <class Visit, class Of>
void visit_run(Visit& visit, Of& of) {
  auto& [id, file, created, ended, isoscale_version, git_hash, device, complete, ranks, nodes,
         fewest_per_node, most_per_node, hosts, cpu, gpu, cores, ok_points, points, experiments] =
      of;
  visit_each(visit, id, file, created, ended, isoscale_version, git_hash, device, complete, ranks,
             nodes, fewest_per_node, most_per_node, hosts, cpu, gpu, cores, ok_points, points,
             experiments);
}

class Put {
 public:
  template <class T>
  void operator()(const T& value) {
    into_.push_back(value);
  }
  template <class T>
  void operator()(const std::optional<T>& value) {
    into_.push_back(value ? json(*value) : json(nullptr));
  }
  void operator()(const std::vector<IndexExperiment>& values) {
    json list = json::array();
    for (const IndexExperiment& value : values) {
      Put inner;
      visit_experiment(inner, value);
      list.push_back(std::move(inner.into_));
    }
    into_.push_back(std::move(list));
  }
  [[nodiscard]] json take() { return std::move(into_); }

 private:
  json into_ = json::array();
};

class Get {
 public:
  explicit Get(const json& from) : from_(from) {}

  template <class T>
  void operator()(T& value) {
    next().get_to(value);
  }
  template <class T>
  void operator()(std::optional<T>& value) {
    const json& field = next();
    value = field.is_null() ? std::nullopt : std::optional{field.get<T>()};
  }
  void operator()(std::vector<IndexExperiment>& values) {
    for (const json& field : next()) {
      Get inner{field};
      visit_experiment(inner, values.emplace_back());
    }
  }

 private:
  const json& next() { return from_.at(at_++); }

  const json& from_;  ///< not owned
  std::size_t at_ = 0;
};

}  // namespace

std::string to_wire(const IndexAnswer& answer) {
  Put put;
  if (const auto* const run = std::get_if<IndexRun>(&answer)) {
    visit_run(put, *run);
  } else {
    put(std::get<Unreadable>(answer).file);
    put(std::get<Unreadable>(answer).reason);
  }
  std::string bytes;
  json::to_cbor(json::array({std::holds_alternative<IndexRun>(answer), put.take()}), bytes);
  return bytes;
}

IndexAnswer from_wire(std::string_view bytes) {
  try {
    const json whole = json::from_cbor(bytes.begin(), bytes.end());
    Get get{whole.at(1)};
    if (whole.at(0).get<bool>()) {
      IndexRun run;
      visit_run(get, run);
      return run;
    }
    Unreadable unreadable;
    get(unreadable.file);
    get(unreadable.reason);
    return unreadable;
  } catch (const json::exception& error) {
    throw base::Error(
        fmt::format("a process of its own sent what cannot be understood: {}", error.what()));
  }
}

}  // namespace isoscale::analysis
