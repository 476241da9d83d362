// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "preflight/job_view.hpp"
#include "preflight/rules.hpp"

/// These rules check environment variables: those of NCCL and the files and devices that they name
/// (for their meanings see NCCL documentation, Environment Variables), then others.
namespace isoscale::preflight {
namespace {

Results of_nccl(const JobFacts& job, Findings findings, std::string fine) {
  return std::move(findings).results(
      {.fine = std::move(fine),
       .unknown = job.device == "cuda" ? "no rank is known" : "the job does not use NCCL",
       .how = "run with --device cuda"});
}

/// Returns the value of a variable in lower case, since NCCL ignores case.
std::optional<std::string> lower_setting(const CheckedRank& rank, const std::string& name) {
  std::optional<std::string> value = setting(rank, name);
  if (!value) return value;
  std::ranges::transform(*value, value->begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return value;
}

/// True if a path level (NCCL_P2P_LEVEL, NCCL_NET_GDR_LEVEL) says never: LOC, or 0 in the old form.
bool says_never(const CheckedRank& rank, const std::string& name) {
  const std::optional<std::string> level = lower_setting(rank, name);
  return level == "loc" || level == "0";
}

Results judge_transports(const JobFacts& job) {
  Findings findings;
  if (job.device != "cuda") return of_nccl(job, std::move(findings), {});
  const auto is_on = [](const std::string& variable) {
    return [variable](const CheckedRank& rank, const CheckedNode*) {
      return is_switched_on(rank, variable);
    };
  };
  const auto has_network = [](const CheckedNode* node) {
    return node != nullptr && has_up_port(*node);
  };
  find_bad_settings(
      findings, job,
      {{.variable = "NCCL_P2P_DISABLE",
        .hurts = is_on("NCCL_P2P_DISABLE"),
        .cost = "GPUs of a node talk through host memory instead of NVLink or PCIe",
        .fix = "unset it"},
       {.variable = "NCCL_P2P_LEVEL",
        .hurts = [](const CheckedRank& rank,
                    const CheckedNode*) { return says_never(rank, "NCCL_P2P_LEVEL"); },
        .cost = "GPUs of a node talk through host memory instead of NVLink or PCIe",
        .fix = "unset it"},
       {.variable = "NCCL_NET_GDR_LEVEL",
        .hurts =
            [&](const CheckedRank& rank, const CheckedNode* node) {
              return says_never(rank, "NCCL_NET_GDR_LEVEL") && has_network(node);
            },
        .cost = "adapters do not read GPU memory: what goes to other nodes passes host memory",
        .fix = "unset it"},
       {.variable = "NCCL_SHM_DISABLE",
        .hurts = is_on("NCCL_SHM_DISABLE"),
        .cost = "GPUs of a node without peer access talk through the network",
        .fix = "unset it"},
       {.variable = "NCCL_IB_DISABLE",
        .hurts =
            [&](const CheckedRank& rank, const CheckedNode* node) {
              return is_switched_on(rank, "NCCL_IB_DISABLE") && has_network(node);
            },
        .cost = "nodes talk through TCP sockets although they have InfiniBand or RoCE",
        .fix = "unset it"},
       {.variable = "NCCL_NET",
        .hurts =
            [&](const CheckedRank& rank, const CheckedNode* node) {
              return lower_setting(rank, "NCCL_NET") == "socket" && has_network(node);
            },
        .cost = "nodes talk through TCP sockets although they have InfiniBand or RoCE",
        .fix = "unset it"}});
  return of_nccl(job, std::move(findings), "no variable turns a transport off");
}

Results judge_files(const JobFacts& job) {
  Findings findings;
  if (job.device != "cuda") return of_nccl(job, std::move(findings), {});
  if (!job.ranks.empty()) findings.know();
  const auto judge = [&](const CheckedRank& rank, const CheckedNode*) -> std::string {
    if (rank.missing_files.empty()) return {};
    return fmt::format("{} names a file that is not there", listed(rank.missing_files));
  };
  for_ranks(job, judge, [&](Place place, const std::string& text) {
    findings.warn(std::move(place),
                  {.what = text,
                   .cost = "NCCL uses what it detects itself, which may be another topology",
                   .fix = "put the file on every node, or unset the variable"});
  });
  return of_nccl(job, std::move(findings), "no variable names a file that is not there");
}

Results judge_debug(const JobFacts& job) {
  Findings findings;
  if (job.device != "cuda") return of_nccl(job, std::move(findings), {});
  find_bad_settings(findings, job,
                    {{.variable = "NCCL_DEBUG",
                      .hurts =
                          [](const CheckedRank& rank, const CheckedNode*) {
                            const auto level = lower_setting(rank, "NCCL_DEBUG");
                            return level == "trace" || level == "info";
                          },
                      .cost = "every rank prints while it connects, with TRACE at every call",
                      .fix = "NCCL_DEBUG=WARN, or unset it"}});
  return of_nccl(job, std::move(findings), "NCCL prints no more than warnings");
}

/// Lists the variables that force a choice of NCCL, such as its algorithm. Experiments set them on
/// purpose, so this is no warning, but they explain results.
Results judge_choices(const JobFacts& job) {
  Findings findings;
  if (job.device == "cuda" && !job.ranks.empty()) findings.know();
  const std::string forced =
      settings_of_first(job, {"NCCL_ALGO", "NCCL_PROTO", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS",
                              "NCCL_NTHREADS", "NCCL_BUFFSIZE", "NCCL_CROSS_NIC",
                              "NCCL_NVLS_ENABLE", "NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL"});
  return of_nccl(
      job, std::move(findings),
      fmt::format("{}; nccl.conf and NCCL_CONF_FILE are not read here",
                  forced.empty() ? "variables leave all to NCCL" : fmt::format("set: {}", forced)));
}

bool names_loopback(std::string_view list) {
  if (list.starts_with('^')) return false;
  if (list.starts_with('=')) list.remove_prefix(1);
  const std::vector<std::string> parts = parts_of_list(list);
  return std::ranges::find(parts, "lo") != parts.end();
}

Results judge_interfaces(const JobFacts& job) {
  Findings findings;
  if (job.device != "cuda") return of_nccl(job, std::move(findings), {});
  if (!job.ranks.empty()) findings.know();
  const auto judge = [&](const CheckedRank& rank, const CheckedNode* node) -> std::string {
    const std::optional<std::string> list = setting(rank, "NCCL_IB_HCA");
    if (!list || node == nullptr || !node->ports) return {};
    const std::vector<std::string> unknown = unknown_adapters(*list, *node);
    if (unknown.empty()) return {};
    return fmt::format("NCCL_IB_HCA names {}, which the node does not have", listed(unknown));
  };
  for_ranks(job, judge, [&](Place place, const std::string& text) {
    findings.warn(std::move(place),
                  {.what = text,
                   .cost = "NCCL uses fewer adapters, or TCP sockets where none is left",
                   .fix = "name adapters as ibv_devices does, or unset it"});
  });
  const bool several = has_several_nodes(job);
  find_bad_settings(findings, job,
                    {{.variable = "NCCL_SOCKET_IFNAME",
                      .hurts =
                          [&](const CheckedRank& rank, const CheckedNode*) {
                            return several && names_loopback(*setting(rank, "NCCL_SOCKET_IFNAME"));
                          },
                      .cost = "other nodes cannot be reached through the loopback device: NCCL "
                              "does not connect",
                      .fix = "name the device of the nodes' common network, or unset it"}});
  return of_nccl(job, std::move(findings), "adapters and devices that are named exist");
}

/// True if a library is the plugin that NCCL_NET_PLUGIN names: NAME itself, or libnccl-net-NAME.so.
/// The check nccl-files finds out whether a path exists.
bool is_plugin(std::string_view wanted, std::string_view library) {
  return library.starts_with(wanted) ||
         library.starts_with(fmt::format("libnccl-net-{}.so", wanted));
}

std::string plugin_trouble(const CheckedRank& rank, const std::vector<std::string>& plugins) {
  const std::optional<std::string> wanted = setting(rank, "NCCL_NET_PLUGIN");
  const auto is_network = [](const std::string& library) {
    return library.starts_with("libnccl-net");
  };
  const bool is_path = wanted && wanted->find('/') != std::string::npos;
  if (wanted && !wanted->empty() && *wanted != "none" && !is_path &&
      std::ranges::none_of(plugins, [&](const auto& found) { return is_plugin(*wanted, found); })) {
    return fmt::format("NCCL_NET_PLUGIN={}, and no such library is found",
                       base::printable(*wanted));
  }
  if (is_switched_on(rank, "NCCL_COLLNET_ENABLE") && std::ranges::none_of(plugins, is_network)) {
    return "NCCL_COLLNET_ENABLE asks for SHARP, and no network plugin is found";
  }
  return {};
}

Results judge_plugins(const JobFacts& job) {
  Findings findings;
  if (job.device != "cuda") return of_nccl(job, std::move(findings), {});
  std::vector<Observed> observed;
  for (const CheckedNode& node : job.nodes) {
    Observed one{.place = {.host = node.host}, .value = std::nullopt};
    if (node.nccl_plugins) {
      one.value = node.nccl_plugins->empty()
                      ? "none"
                      : fmt::format("{}", fmt::join(*node.nccl_plugins, ", "));
    }
    observed.push_back(std::move(one));
  }
  find_differences(findings, observed,
                   {.quantity = "NCCL plugins",
                    .cost = "nodes choose other networks or tunings: they hang, or differ in speed",
                    .fix = "install the same plugins on all nodes, and the same LD_LIBRARY_PATH"});
  const auto judge = [&](const CheckedRank& rank, const CheckedNode* node) -> std::string {
    if (node == nullptr || !node->nccl_plugins) return {};
    return plugin_trouble(rank, *node->nccl_plugins);
  };
  for_ranks(job, judge, [&](Place place, const std::string& text) {
    findings.warn(std::move(place),
                  {.what = text,
                   .cost = "NCCL uses its own network code, without what was asked for",
                   .fix = "put the plugin's folder into LD_LIBRARY_PATH, or unset the variable"});
  });
  std::string fine;
  for (const Observed& one : observed) {
    if (one.value) fine = *one.value + " on all nodes";
  }
  return std::move(findings).results(
      {.fine = fine, .unknown = "the library paths of the nodes are not known"});
}

/// Checks variables of CUDA (CUDA C++ Programming Guide, CUDA Environment Variables).
Results judge_cuda_settings(const JobFacts& job) {
  Findings findings;
  if (job.device != "cuda") {
    return std::move(findings).results({.fine = {}, .unknown = "the job runs on the host"});
  }
  find_bad_settings(
      findings, job,
      {{.variable = "CUDA_LAUNCH_BLOCKING",
        .hurts = [](const CheckedRank& rank,
                    const CheckedNode*) { return is_switched_on(rank, "CUDA_LAUNCH_BLOCKING"); },
        .cost = "every kernel is waited for: nothing overlaps, gaps everywhere",
        .fix = "unset it"}});
  const std::string set = settings_of_first(
      job, {"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_DEVICE_ORDER", "CUDA_MODULE_LOADING"});
  return std::move(findings).results(
      {.fine = set.empty() ? "nothing that orders kernels is set" : fmt::format("set: {}", set),
       .unknown = "no rank is known"});
}

/// True if the list leaves UCX a transport over InfiniBand: "all", "ib", or one that begins with
/// rc, ud or dc ("rc_x", "dc_mlx5"); "^" excludes the names (UCX documentation, UCX_TLS).
bool leaves_infiniband(std::string_view list) {
  const bool is_exclusion = list.starts_with('^');
  if (is_exclusion) list.remove_prefix(1);
  const std::vector<std::string> parts = parts_of_list(list);
  const auto has = [&](std::string_view name) {
    return std::ranges::find(parts, name) != parts.end();
  };
  if (is_exclusion) return !has("ib") && !(has("rc") && has("ud") && has("dc"));
  return has("all") || has("ib") || std::ranges::any_of(parts, [](const std::string& part) {
           return part.starts_with("rc") || part.starts_with("ud") || part.starts_with("dc");
         });
}

Results judge_ucx(const JobFacts& job) {
  Findings findings;
  const bool several = has_several_nodes(job);
  find_bad_settings(findings, job,
                    {{.variable = "UCX_TLS",
                      .hurts =
                          [&](const CheckedRank& rank, const CheckedNode* node) {
                            return several && node != nullptr && has_up_port(*node) &&
                                   !leaves_infiniband(*setting(rank, "UCX_TLS"));
                          },
                      .cost = "MPI between nodes goes through TCP although there is InfiniBand or "
                              "RoCE",
                      .fix = "add rc or dc to it, or unset it"}});
  return std::move(findings).results(
      {.fine = "UCX may use what the nodes have", .unknown = "no rank is known"});
}

Results judge_threads(const JobFacts& job) {
  Findings findings;
  if (job.device != "host") {
    return std::move(findings).results(
        {.fine = {}, .unknown = "the job does not compute with BLAS"});
  }
  find_bad_settings(findings, job,
                    {{.variable = "OMP_NUM_THREADS",
                      .hurts =
                          [](const CheckedRank& rank, const CheckedNode*) {
                            return setting(rank, "OMP_NUM_THREADS") !=
                                   fmt::format("{}", rank.blas_threads);
                          },
                      .cost = "none if only this program reads it: BLAS has the number of threads "
                              "that --blas-threads says",
                      .fix = "set both to the same number, or unset it"}});
  return std::move(findings).results({.fine = "OMP_NUM_THREADS says nothing else than "
                                              "--blas-threads",
                                      .unknown = "no rank is known"});
}

/// True for variables that launchers and scripts set differently for each rank.
bool is_of_one_rank(const std::string& variable) {
  constexpr std::array<std::string_view, 6> names{
      "CUDA_VISIBLE_DEVICES", "UCX_NET_DEVICES",         "OMP_PLACES",
      "GOMP_CPU_AFFINITY",    "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"};
  return std::ranges::find(names, variable) != names.end();
}

/// Returns the part of a variable's value that must be the same on all ranks. For NCCL_IB_HCA this
/// is only the number of adapters and whether they are named or left out, since each rank may be
/// given the adapters near its own GPU.
std::string alike_part(const CheckedRank& rank, const std::string& variable) {
  const std::optional<std::string> value = setting(rank, variable);
  if (!value) return fmt::format("{} is not set", variable);
  if (variable == "NCCL_IB_HCA") {
    return fmt::format("{} {} {}", variable, value->starts_with('^') ? "leaves out" : "names",
                       base::counted(parts_of_list(*value).size(), "adapter"));
  }
  return fmt::format("{}={}", variable, base::printable(*value));
}

Results judge_equal(const JobFacts& job) {
  Findings findings;
  std::set<std::string> variables;
  for (const CheckedRank& rank : job.ranks) {
    findings.know();
    for (const auto& [variable, value] : rank.environment) {
      if (!is_of_one_rank(variable)) variables.insert(variable);
    }
  }
  for (const std::string& variable : variables) {
    std::vector<std::string> values;
    for (const CheckedRank& rank : job.ranks) values.push_back(alike_part(rank, variable));
    const std::string usual = *most_common(std::span<const std::string>{values});
    const auto judge = [&](const CheckedRank& rank, const CheckedNode*) -> std::string {
      const std::string text = alike_part(rank, variable);
      return text == usual ? "" : fmt::format("{}, elsewhere {}", text, usual);
    };
    for_ranks(job, judge, [&](Place place, const std::string& text) {
      findings.warn(std::move(place),
                    {.what = text,
                     .cost = "libraries that choose differently hang, or differ in speed",
                     .fix = "hand variables to all nodes: mpirun -x NAME, srun --export=ALL"});
    });
  }
  return std::move(findings).results(
      {.fine = "recorded variables are alike on all ranks", .unknown = "no rank is known"});
}

constexpr std::array environment_table{
    Check{"nccl-transports", "variables that turn transports of NCCL off", judge_transports},
    Check{"nccl-files", "files that variables of NCCL name", judge_files},
    Check{"nccl-debug", "how much NCCL prints", judge_debug},
    Check{"nccl-choices", "algorithms and other choices of NCCL that variables set", judge_choices},
    Check{"nccl-interfaces", "adapters and network devices that variables set for NCCL",
          judge_interfaces},
    Check{"nccl-plugins", "network, SHARP and tuner plugins of NCCL on all nodes", judge_plugins},
    Check{"cuda-settings", "variables that order the work of CUDA", judge_cuda_settings},
    Check{"ucx-transports", "whether UCX may use InfiniBand where there is some", judge_ucx},
    Check{"thread-settings", "OMP_NUM_THREADS against --blas-threads", judge_threads},
    Check{"equal-settings", "whether recorded variables are alike on all ranks", judge_equal},
};

}  // namespace

std::span<const Check> environment_checks() { return environment_table; }

}  // namespace isoscale::preflight
