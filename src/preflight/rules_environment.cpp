// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "preflight/rules.hpp"

/// These rules check environment variables: first those of NCCL, and the files and devices that
/// they name (see "Environment Variables" in NCCL's documentation), then those of CUDA, UCX and
/// OpenMP.
namespace isoscale::preflight {
namespace {

using enum Verdict;

/// True if the value of an environment variable is a number other than 0.
bool is_switched_on(std::string_view value) {
  return std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; }) &&
         value.find_first_not_of('0') != std::string_view::npos;
}

/// True if the job has ranks on more than one node.
bool has_several_nodes(const JobFacts& job) {
  return std::ranges::any_of(
      job.ranks, [&](const CheckedRank& rank) { return rank.node != job.ranks.front().node; });
}

/// Returns the variables among `variables` that are set on the job's first rank, with their values:
/// "NCCL_ALGO=Ring, NCCL_PROTO=LL".
std::string settings_of_first(const JobFacts& job, const std::vector<std::string>& variables) {
  std::string text;
  if (job.ranks.empty()) return text;
  for (const std::string& variable : variables) {
    const std::optional<std::string> value = setting(job.ranks.front(), variable);
    if (!value) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", variable, base::printable(*value));
  }
  return text;
}

/// An environment variable, and a function that tells if its value hurts performance.
struct BadSetting {
  std::string_view variable{};
  bool (*hurts)(std::string_view value, const NodeRanks& node, const CheckedRank& rank) = nullptr;
  std::string_view cost{}, fix{};  ///< texts of the finding; "" = those of the rule's row
};

/// Adds a finding for each variable whose value hurts performance, once for each node and value.
void find_bad_settings(Findings& findings, const JobFacts& job,
                       std::span<const BadSetting> settings) {
  if (!job.ranks.empty()) findings.add(nothing_wrong);
  for (const BadSetting& bad : settings) {
    const std::string variable{bad.variable};
    judge_ranks(findings, job, [&](const CheckedRank& rank, const NodeRanks& node) -> Answer {
      const std::optional<std::string> value = setting(rank, variable);
      if (!value || !bad.hurts(*value, node, rank)) return not_concerned;
      return {.wrong = fmt::format("{}={}", variable, base::printable(*value)),
              .cost = bad.cost,
              .fix = bad.fix};
    });
  }
}

bool is_on(std::string_view value, const NodeRanks&, const CheckedRank&) {
  return is_switched_on(value);
}

bool is_on_with_network(std::string_view value, const NodeRanks& node, const CheckedRank&) {
  return is_switched_on(value) && node.has_network();
}

using base::lowered;

/// True if a variable that limits a path (NCCL_P2P_LEVEL, NCCL_NET_GDR_LEVEL) forbids the path
/// altogether: its value is LOC or, in the old numeric form, 0. NCCL ignores the case of values.
bool is_never(std::string_view value, const NodeRanks&, const CheckedRank&) {
  return lowered(value) == "loc" || value == "0";
}

constexpr std::string_view through_host =
    "GPUs of a node communicate through host memory instead of NVLink or PCIe";
constexpr std::string_view through_tcp =
    "nodes communicate through TCP sockets although they have InfiniBand or RoCE";

constexpr auto transport_settings = std::to_array<BadSetting>(
    {{"NCCL_P2P_DISABLE", is_on, through_host},
     {"NCCL_P2P_LEVEL", is_never, through_host},
     {"NCCL_NET_GDR_LEVEL",
      [](std::string_view value, const NodeRanks& node, const CheckedRank& rank) {
        return is_never(value, node, rank) && node.has_network();
      },
      "adapters do not read GPU memory, so traffic to other nodes goes through host memory"},
     {"NCCL_SHM_DISABLE", is_on, "GPUs of a node without peer access use the network"},
     {"NCCL_IB_DISABLE", is_on_with_network, through_tcp},
     {"NCCL_NET",
      [](std::string_view value, const NodeRanks& node, const CheckedRank&) {
        return lowered(value) == "socket" && node.has_network();
      },
      through_tcp}});

Answer judge_files(const CheckedRank& rank, const NodeRanks&, const JobFacts&) {
  if (rank.missing_files.empty()) return nothing_wrong;
  return wrong("the file that {} names does not exist", listed(rank.missing_files));
}

constexpr auto debug_settings = std::to_array<BadSetting>(
    {{"NCCL_DEBUG", [](std::string_view value, const NodeRanks&, const CheckedRank&) {
        return lowered(value) == "trace" || lowered(value) == "info";
      }}});

/// Lists the variables by which the user overrides a choice of NCCL, such as its algorithm. They
/// help to explain results. They are no reason for a warning, since experiments set them on
/// purpose.
void judge_choices(Findings& findings, const JobFacts& job) {
  const std::string forced =
      settings_of_first(job, {"NCCL_ALGO", "NCCL_PROTO", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS",
                              "NCCL_NTHREADS", "NCCL_BUFFSIZE", "NCCL_CROSS_NIC",
                              "NCCL_NVLS_ENABLE", "NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL"});
  findings.otherwise.fine = fmt::format(
      "{}; this check does not read nccl.conf or NCCL_CONF_FILE",
      forced.empty() ? "no variable overrides NCCL's choices" : fmt::format("set: {}", forced));
  if (!job.ranks.empty()) findings.add(nothing_wrong);
}

bool names_loopback(std::string_view list) {
  if (list.starts_with('^')) return false;
  if (list.starts_with('=')) list.remove_prefix(1);
  const std::vector<std::string> parts = parts_of_list(list);
  return std::ranges::find(parts, "lo") != parts.end();
}

void judge_interfaces(Findings& findings, const JobFacts& job) {
  judge_ranks(findings, job, [](const CheckedRank& rank, const NodeRanks& node) -> Answer {
    const std::optional<std::string> list = setting(rank, "NCCL_IB_HCA");
    if (!list || node.facts == nullptr || !node.facts->ports) return nothing_wrong;
    const std::vector<std::string> unknown = unknown_adapters(*list, *node.facts);
    if (unknown.empty()) return nothing_wrong;
    return {
        .wrong = fmt::format("NCCL_IB_HCA names {}, which the node does not have", listed(unknown)),
        .cost = "NCCL uses fewer adapters, or TCP sockets if none is left",
        .fix = "use the adapter names that ibv_devices lists, or unset it"};
  });
  if (!has_several_nodes(job)) return;
  find_bad_settings(
      findings, job,
      std::to_array<BadSetting>(
          {{"NCCL_SOCKET_IFNAME", [](std::string_view value, const NodeRanks&, const CheckedRank&) {
              return names_loopback(value);
            }}}));
}

/// True if a library's file name fits `wanted`, the value of NCCL_NET_PLUGIN: it begins with this
/// value, or with libnccl-net-VALUE.so; a version may follow. A value that is a path is not handled
/// here; the check nccl-files tests that the file exists.
bool is_plugin(std::string_view wanted, std::string_view library) {
  return library.starts_with(wanted) ||
         library.starts_with(fmt::format("libnccl-net-{}.so", wanted));
}

std::string plugin_fault(const CheckedRank& rank, const std::vector<std::string>& plugins) {
  const std::optional<std::string> wanted = setting(rank, "NCCL_NET_PLUGIN");
  const auto is_network = [](const std::string& library) {
    return library.starts_with("libnccl-net");
  };
  const bool is_path = wanted && wanted->find('/') != std::string::npos;
  if (wanted && !wanted->empty() && *wanted != "none" && !is_path &&
      std::ranges::none_of(plugins, [&](const auto& found) { return is_plugin(*wanted, found); })) {
    return fmt::format("NCCL_NET_PLUGIN={}, but no such library was found",
                       base::printable(*wanted));
  }
  if (is_switched_on(setting(rank, "NCCL_COLLNET_ENABLE").value_or("")) &&
      std::ranges::none_of(plugins, is_network)) {
    return "NCCL_COLLNET_ENABLE asks for SHARP, but no network plugin was found";
  }
  return {};
}

void judge_plugins(Findings& findings, const JobFacts& job) {
  // The advice in the rule's row is to run on GPUs. It is dropped, since every job that this
  // function judges runs on GPUs.
  findings.otherwise.how = {};
  std::vector<Observed> observed;
  for (const CheckedNode& node : job.nodes) {
    Observed& one = observed.emplace_back(Observed{.place = {.host = node.host}, .value = {}});
    if (!node.nccl_plugins) continue;
    one.value = node.nccl_plugins->empty() ? "none" : base::listed(*node.nccl_plugins);
    findings.otherwise.fine = *one.value + " on all nodes";
  }
  find_differences(findings, observed, "NCCL plugins",
                   {.cost = "nodes may use other networks or tunings, and hang or differ in speed",
                    .fix = "use the same plugins and the same LD_LIBRARY_PATH on all nodes"});
  judge_ranks(findings, job, [](const CheckedRank& rank, const NodeRanks& node) -> Answer {
    if (node.facts == nullptr || !node.facts->nccl_plugins) return not_concerned;
    const std::string fault = plugin_fault(rank, *node.facts->nccl_plugins);
    return fault.empty() ? not_concerned : Answer{.wrong = fault};
  });
}

/// Checks variables of CUDA (see "CUDA Environment Variables" in the CUDA C++ Programming Guide).
void judge_cuda_settings(Findings& findings, const JobFacts& job) {
  find_bad_settings(findings, job, std::to_array<BadSetting>({{"CUDA_LAUNCH_BLOCKING", is_on}}));
  const std::string set = settings_of_first(
      job, {"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_DEVICE_ORDER", "CUDA_MODULE_LOADING"});
  findings.otherwise.fine = set.empty() ? "no variable that affects kernels is set" : "set: " + set;
}

/// True if a value of UCX_TLS lets UCX use a transport over InfiniBand. Names of such
/// transports are "all", "ib", and those that begin with rc, ud or dc ("rc_x", "dc_mlx5"). A
/// leading "^" excludes the names in the list (UCX documentation, UCX_TLS).
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

void judge_ucx(Findings& findings, const JobFacts& job) {
  if (!job.ranks.empty()) findings.add(nothing_wrong);
  if (!has_several_nodes(job)) return;
  find_bad_settings(
      findings, job,
      std::to_array<BadSetting>(
          {{"UCX_TLS", [](std::string_view value, const NodeRanks& node, const CheckedRank&) {
              return node.has_network() && !leaves_infiniband(value);
            }}}));
}

constexpr auto thread_settings = std::to_array<BadSetting>(
    {{"OMP_NUM_THREADS", [](std::string_view value, const NodeRanks&, const CheckedRank& rank) {
        return value != fmt::format("{}", rank.blas_threads);
      }}});

/// True for variables that launchers and scripts usually set to a different value for each rank.
bool is_of_one_rank(const std::string& variable) {
  constexpr std::array<std::string_view, 8> names{
      "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
      "UCX_NET_DEVICES",      "OMP_PLACES",
      "GOMP_CPU_AFFINITY",    "CUDA_MPS_PIPE_DIRECTORY",
      "NCCL_HOSTID",          "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"};
  return std::ranges::find(names, variable) != names.end();
}

/// Returns the part of a variable's value that must be the same on all ranks. Each rank may be
/// given the adapters near its own GPU, so for NCCL_IB_HCA this part is only how many adapters the
/// value has, and whether it names them or leaves them out.
std::string alike_part(const CheckedRank& rank, const std::string& variable) {
  const std::optional<std::string> value = setting(rank, variable);
  if (!value) return fmt::format("{} is not set", variable);
  if (variable == "NCCL_IB_HCA") {
    return fmt::format("{} {} {}", variable, value->starts_with('^') ? "excludes" : "names",
                       base::counted(parts_of_list(*value).size(), "adapter"));
  }
  return fmt::format("{}={}", variable, base::printable(*value));
}

void judge_equal(Findings& findings, const JobFacts& job) {
  std::set<std::string> variables;
  for (const CheckedRank& rank : job.ranks) {
    findings.add(nothing_wrong);
    for (const auto& [variable, value] : rank.environment) {
      if (!is_of_one_rank(variable)) variables.insert(variable);
    }
  }
  for (const std::string& variable : variables) {
    std::vector<std::string> values;
    for (const CheckedRank& rank : job.ranks) values.push_back(alike_part(rank, variable));
    const std::string usual = *most_common(std::span<const std::string>{values});
    judge_ranks(findings, job, [&](const CheckedRank& rank, const NodeRanks&) -> Answer {
      const std::string text = alike_part(rank, variable);
      if (text == usual) return nothing_wrong;
      return wrong("{}, elsewhere {}", text, usual);
    });
  }
}

/// Makes a rule from a table of environment variables and the values that hurt performance.
template <const auto& settings>
void no_bad_settings(Findings& findings, const JobFacts& job) {
  findings.set_unknown("no rank is known", "");
  find_bad_settings(findings, job, settings);
}

constexpr std::string_view how_with_nccl = "run with --device cuda";

constexpr auto environment_table = std::to_array<Rule>(
    {{"nccl-transports", no_bad_settings<transport_settings>, warning, "", "unset it",
      "no variable disables a transport", "", how_with_nccl, with_nccl},
     {"nccl-files", each_rank<judge_files>, warning,
      "NCCL uses what it detects itself instead of the file",
      "put the file on every node, or unset the variable", "all files that variables name exist",
      "", how_with_nccl, with_nccl},
     {"nccl-debug", no_bad_settings<debug_settings>, warning,
      "every rank prints while it connects, and with TRACE at every call",
      "set NCCL_DEBUG=WARN, or unset it", "NCCL prints no more than warnings", "", how_with_nccl,
      with_nccl},
     {"nccl-choices", judge_choices, warning, "", "", "", "no rank is known", how_with_nccl,
      with_nccl},
     {"nccl-interfaces", judge_interfaces, warning,
      "NCCL cannot connect nodes through the loopback device",
      "set it to the device of the network between the nodes, or unset it",
      "no variable names a wrong adapter or device", "no rank is known", how_with_nccl, with_nccl},
     {"nccl-plugins", judge_plugins, warning,
      "NCCL uses its own network code instead of the plugin",
      "add the plugin's folder to LD_LIBRARY_PATH, or unset the variable", "",
      "the library paths of the nodes are not known", how_with_nccl, with_nccl},
     {"cuda-settings", judge_cuda_settings, warning,
      "the host waits for every kernel, so nothing overlaps and gaps appear between kernels",
      "unset it", "", "no rank is known", "", on_gpus},
     {"ucx-transports", judge_ucx, warning,
      "MPI uses TCP between nodes although they have InfiniBand or RoCE",
      "add rc or dc to it, or unset it", "UCX may use all networks", "no rank is known"},
     {"thread-settings", no_bad_settings<thread_settings>, warning,
      "none for isoscale, whose BLAS follows --blas-threads; other libraries may differ",
      "set both to the same number, or unset OMP_NUM_THREADS",
      "OMP_NUM_THREADS does not contradict --blas-threads", "", "", with_blas},
     {"equal-settings", judge_equal, warning,
      "libraries may choose differently on these ranks: the job may hang or be slower",
      "pass variables to all nodes: mpirun -x NAME, srun --export=ALL",
      "recorded variables are the same on all ranks", "no rank is known"}});

}  // namespace

std::span<const Rule> environment_rules() { return environment_table; }

}  // namespace isoscale::preflight
