// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <set>

#include "base/build_info.hpp"
#include "base/text.hpp"
#include "machine/facts.hpp"
#include "machine/job_environment.hpp"

namespace isoscale::runner {
namespace {

std::string random_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

}  // namespace

std::filesystem::path output_path(const config::RunConfig& config, const std::string& host) {
  if (!config.output.empty()) return config.output;
  std::string workloads;
  std::set<std::string> named;
  for (const config::Experiment& experiment : config.experiments) {
    if (!named.insert(experiment.workload).second) continue;
    workloads += (workloads.empty() ? "" : "-") + experiment.workload;
  }
  std::string time = base::utc_now(), where = host;
  std::erase(time, ':');
  std::erase(time, '-');
  std::replace_if(
      where.begin(), where.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-'; }, '_');
  return fmt::format("isoscale-{}-{}-{}.h5", workloads, where, time);
}

results::RunData make_header(const config::RunConfig& config, const Site& site,
                             const executor::Description& device,
                             std::span<const machine::MachineFacts> facts,
                             std::span<const RankSoftware> software) {
  const base::BuildInfo& build = base::build_info();
  results::RunData data;
  data.id = random_id();
  data.created = base::utc_now();
  data.isoscale_version = build.version;
  data.git_hash = build.git_hash;
  data.compiler = build.compiler;
  data.build_type = build.build_type;
  data.device = device.name;
  data.device_detail = device.detail;
  data.mpi_library = comm::Environment::library_version();
  data.command_line = config.command_line;
  data.config_toml = config::to_toml(config);
  data.ranks = site.ranks;
  data.nodes = 1 + *std::max_element(site.node_of_rank.begin(), site.node_of_rank.end());
  data.environment = machine::recorded_environment(machine::process_environment());
  data.rank_facts = rank_facts(facts, software, site.node_of_rank);
  if (site.oversubscribed) {
    data.warnings.emplace_back(
        "ranks share cores: points labelled oversubscribed give no scaling result");
  }
  if (const auto warning = device.facts_text.find("blas_warning");
      warning != device.facts_text.end()) {
    data.warnings.push_back(warning->second);
  }
  if (data.build_type != "Release" && data.build_type != "RelWithDebInfo") {
    data.warnings.push_back(fmt::format(
        "this is a {} build: its own overhead is not that of a release", data.build_type));
  }
  return data;
}

}  // namespace isoscale::runner
