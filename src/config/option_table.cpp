// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "config/option_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "config/values.hpp"
#include "workloads/api/toml_files.hpp"

namespace isoscale::config {

namespace {

using mesh::Placement;
using workloads::Scaling;
using workloads::toml_string;

// Rows of the option table call these functions where their own code would need more than one line.
// The functions that write a value return it as TOML, or "" if there is nothing to write.

/// True if the model equals the built-in model of the same name.
bool is_preset(const workloads::Model& model) {
  const auto has_name = [&](const workloads::Preset& preset) { return preset.name == model.name; };
  return std::ranges::any_of(workloads::model_presets(), has_name) &&
         workloads::load_model(model.name) == model;
}

std::string write_options(const workloads::Options& options) {
  std::string text;
  for (const auto& [key, value] : options) {
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key, toml_string(value));
  }
  return text.empty() ? "" : fmt::format("{{ {} }}", text);
}

/// Stores the rank counts, a list or "all". Throws base::UsageError.
void apply_ranks(std::string_view text, RunConfig& run) {
  run.rank_counts = text == "all" ? RankCounts::every : RankCounts::doubling;
  run.ranks = text == "all" ? std::vector<int>{} : parse_rank_counts(text);
}

std::string write_ranks(const RunConfig& run) {
  if (!run.ranks.empty()) return fmt::format("[{}]", fmt::join(run.ranks, ", "));
  return run.rank_counts == RankCounts::every ? toml_string("all") : "";
}

void apply_gpu_bind(std::string_view text, RunConfig& run) {
  if (text != automatic_gpu_bind) (void)parse_gpu_bind(text);
  run.gpu_bind = text;
}

std::string write_gpu_bind(const RunConfig& run) {
  return run.gpu_bind == automatic_gpu_bind ? "" : toml_string(run.gpu_bind);
}

std::string write_names(const std::vector<std::string>& names) {
  return names.empty() ? "" : toml_string(fmt::format("{}", fmt::join(names, ",")));
}

std::string write_path(const std::filesystem::path& path) {
  return path.empty() ? "" : toml_string(path.string());
}

/// Returns a time as TOML; "" if it is absent.
std::string write_time(const std::optional<units::Seconds>& time) {
  return time ? toml_string(fmt::format("{}s", time->value())) : "";
}

/// Returns a flag as TOML; "" if it is not set.
std::string write_flag(bool set) { return set ? "true" : ""; }

// Short names for the parameter types that the functions of all rows share.
using In = std::string_view;
using E = Experiment;
using R = RunConfig;

constexpr int most_blas_threads = 4096;
constexpr int most_ranks = 1 << 24;  ///< ranks of a curve; ranks whose spans are kept
constexpr int most_ranks_per_node = 4096;
constexpr int most_trace_steps = 1000;

const std::array what_rows{

    RunOption{.name = "workload",
              .value = "NAME[,NAME...]",
              .default_text = "the quick suite",
              .group = Group::basic,
              .arity = Arity::list,
              .scope = Scope::experiment,
              .help = "what to measure (isoscale list workloads)",
              .apply = [](In text, E&, R&) { (void)parse_names(text); },
              .write = [](const E& e, const R&) { return toml_string(e.workload); }},
    RunOption{.name = "suite",
              .value = "NAME",
              .group = Group::basic,
              .help = "set of experiments (isoscale list suites)",
              .apply = [](In, E&, R&) {},
              .write = [](const E&, const R&) { return std::string{}; }},
    RunOption{.name = "model",
              .value = "NAME|FILE.toml",
              .default_text = "tiny",
              .group = Group::basic,
              .scope = Scope::experiment,
              .help = "transformer whose shapes to use (isoscale list models)",
              .apply = [](In text, E& e, R&) { e.base.model = workloads::load_model(text); },
              .write =
                  [](const E& e, const R&) {
                    return is_preset(e.base.model) ? toml_string(e.base.model.name) : "";
                  }},
    RunOption{
        .name = "dtype",
        .value = "f64|f32|tf32|f16|bf16|fp8",
        .default_text = "f32",
        .group = Group::basic,
        .scope = Scope::experiment,
        .help = "compute type; the host has f64 and f32 only",
        .apply = [](In text, E& e, R&) { e.base.precision = workloads::parse_precision(text); },
        .write = [](const E& e,
                    const R&) { return toml_string(workloads::name(e.base.precision)); }},
    RunOption{.name = "set",
              .value = "KEY=VALUE",
              .group = Group::basic,
              .arity = Arity::repeated,
              .scope = Scope::experiment,
              .help = "workload option (isoscale list options WORKLOAD)",
              .apply = [](In text, E&, R&) { (void)parse_assignment(text); },
              .write = [](const E& e, const R&) { return write_options(e.base.options); }},
    RunOption{
        .name = "seed",
        .value = "N",
        .default_text = "1",
        .group = Group::what,
        .scope = Scope::experiment,
        .help = "seed of all random numbers",
        .apply =
            [](In text, E& e, R&) {
              e.base.seed = parse_number(text, 0, std::numeric_limits<std::uint64_t>::max());
            },
        .write = [](const E& e, const R&) { return toml_string(std::to_string(e.base.seed)); }},
};

const std::array where_rows{

    RunOption{.name = "mesh",
              .value = "AXIS=N[,AXIS=N...]",
              .default_text = "by workload",
              .group = Group::basic,
              .scope = Scope::experiment,
              .help = "size of each axis; dp takes the rest if not named",
              .apply = [](In text, E& e, R&) { e.mesh = parse_mesh(text); },
              .write = [](const E& e,
                          const R&) { return e.mesh.empty() ? "" : toml_string(to_text(e.mesh)); }},
    RunOption{
        .name = "scaling",
        .value = "strong|weak",
        .default_text = "strong",
        .group = Group::basic,
        .scope = Scope::experiment,
        .help = "strong: same total work; weak: work grows with ranks",
        .apply =
            [](In text, E& e, R&) {
              e.scaling = parse_choice(text, {Scaling::strong, Scaling::weak});
            },
        .write = [](const E& e, const R&) { return toml_string(workloads::name(e.scaling)); }},
    RunOption{.name = "placement",
              .value = "packed|spread",
              .default_text = "packed",
              .group = Group::where,
              .scope = Scope::experiment,
              .help = "small points fill few nodes, or spread over all",
              .apply =
                  [](In text, E& e, R&) {
                    e.placement = parse_choice(text, {Placement::packed, Placement::spread});
                  },
              .write = [](const E& e, const R&) { return toml_string(mesh::name(e.placement)); }},
    RunOption{.name = "device",
              .value = "auto|cuda|host",
              .default_text = "auto",
              .group = Group::where,
              .help = "device; auto takes GPUs if every rank has one",
              .apply =
                  [](In text, E&, R& r) {
                    r.device = parse_choice(text, {Device::automatic, Device::cuda, Device::host});
                  },
              .write = [](const E&, const R& r) { return toml_string(name(r.device)); }},
    RunOption{.name = "ranks",
              .value = "N[,N...]|all",
              .default_text = "powers of two, and the world",
              .group = Group::basic,
              .arity = Arity::list,
              .help = "rank counts; all: every one",
              .apply = [](In text, E&, R& r) { apply_ranks(text, r); },
              .write = [](const E&, const R& r) { return write_ranks(r); }},
    RunOption{.name = "max-ranks",
              .value = "N",
              .default_text = "the world",
              .group = Group::where,
              .scope = Scope::experiment,
              .help = "largest rank count of the curve",
              .apply = [](In text, E& e, R&) { e.max_ranks = parse_int(text, 1, most_ranks); },
              .write = [](const E& e,
                          const R&) { return e.max_ranks > 0 ? std::to_string(e.max_ranks) : ""; }},
    RunOption{.name = "ranks-per-node",
              .value = "N",
              .default_text = "as started",
              .group = Group::where,
              .help = "ranks of a node, for --dry-run",
              .apply = [](In text, E&,
                          R& r) { r.ranks_per_node = parse_int(text, 1, most_ranks_per_node); },
              .write =
                  [](const E&, const R& r) {
                    return r.ranks_per_node ? std::to_string(*r.ranks_per_node) : "";
                  }},
    RunOption{.name = "fill",
              .value = "idle|replicas",
              .default_text = "idle",
              .group = Group::where,
              .help = "what ranks outside a point do: sleep, or play copies",
              .apply =
                  [](In text, E&, R& r) {
                    r.fill = parse_choice(text, {FillIdle::idle, FillIdle::replicas});
                  },
              .write = [](const E&, const R& r) { return toml_string(name(r.fill)); }},
    RunOption{
        .name = "blas-threads",
        .value = "N",
        .default_text = "1",
        .group = Group::where,
        .help = "BLAS threads per rank, on the host",
        .apply = [](In text, E&, R& r) { r.blas_threads = parse_int(text, 1, most_blas_threads); },
        .write = [](const E&, const R& r) { return std::to_string(r.blas_threads); }},
    RunOption{.name = "host-streams",
              .value = "auto|threads|folded",
              .default_text = "auto",
              .group = Group::where,
              .help = "streams on the host: one thread each, or one in all",
              .apply =
                  [](In text, E&, R& r) {
                    using enum HostStreams;
                    r.host_streams = parse_choice(text, {automatic, threads, folded});
                  },
              .write = [](const E&, const R& r) { return toml_string(name(r.host_streams)); }},
    RunOption{.name = "gpu-bind",
              .value = "auto|GPU[,GPU...]",
              .default_text = "auto",
              .group = Group::where,
              .arity = Arity::list,
              .help = "a GPU per rank of a node: index, UUID or PCI id",
              .apply = [](In text, E&, R& r) { apply_gpu_bind(text, r); },
              .write = [](const E&, const R& r) { return write_gpu_bind(r); }},
    RunOption{
        .name = "share-gpu",
        .group = Group::where,
        .arity = Arity::flag,
        .help = "several ranks on one GPU: for correctness, not speed",
        .apply = [](In text, E&,
                    R& r) { r.share_gpu = parse_flag(text) ? ShareGpu::yes : ShareGpu::no; },
        .write = [](const E&, const R& r) { return write_flag(r.share_gpu == ShareGpu::yes); }},
};

const std::array how_long_rows{

    RunOption{
        .name = "precision",
        .value = "RATIO",
        .default_text = "1%",
        .group = Group::how_long,
        .help = "stop a point when its interval is this narrow",
        .apply = [](In text, E&, R& r) { r.precision = parse_share(text); },
        .write = [](const E&, const R& r) { return toml_string(fmt::format("{}", r.precision)); }},
    RunOption{.name = "max-time",
              .value = "TIME",
              .default_text = "30s",
              .group = Group::basic,
              .help = "target time of a point; up to 3 times that for 6 steps",
              .apply = [](In text, E&, R& r) { r.max_time = parse_time_limit(text); },
              .write = [](const E&, const R& r) { return write_time(r.max_time); }},
    RunOption{.name = "soak",
              .value = "TIME",
              .group = Group::how_long,
              .help = "then replay one step this long and compare every bit",
              .apply = [](In text, E&, R& r) { r.soak = parse_time_limit(text); },
              .write = [](const E&, const R& r) { return write_time(r.soak); }},
    RunOption{.name = "timeout",
              .value = "TIME",
              .default_text = "120s",
              .group = Group::how_long,
              .help = "abort a point without progress after this; 0s: never",
              .apply = [](In text, E&, R& r) { r.timeout = parse_timeout(text); },
              .write = [](const E&, const R& r) { return write_time(r.timeout); }},
    RunOption{.name = "budget",
              .value = "TIME",
              .group = Group::basic,
              .help = "time limit of the whole run; most useful points first",
              .apply = [](In text, E&, R& r) { r.budget = parse_time_limit(text); },
              .write = [](const E&, const R& r) { return write_time(r.budget); }},
};

const std::array looking_rows{

    RunOption{
        .name = "trace-steps",
        .value = "N",
        .default_text = "4",
        .group = Group::looking,
        .help = "traced steps kept per point, for the breakdown",
        .apply = [](In text, E&, R& r) { r.trace_steps = parse_int(text, 0, most_trace_steps); },
        .write = [](const E&, const R& r) { return std::to_string(r.trace_steps); }},
    RunOption{.name = "trace-ranks",
              .value = "N",
              .default_text = "64",
              .group = Group::looking,
              .help = "ranks whose traces are kept, from every stage",
              .apply = [](In text, E&, R& r) { r.trace_ranks = parse_int(text, 1, most_ranks); },
              .write = [](const E&, const R& r) { return std::to_string(r.trace_ranks); }},
    RunOption{
        .name = "graph",
        .group = Group::looking,
        .arity = Arity::flag,
        .help = "play each step as one captured CUDA graph",
        .apply = [](In text, E&, R& r) { r.graph = parse_flag(text) ? Graph::on : Graph::off; },
        .write = [](const E&, const R& r) { return write_flag(r.graph == Graph::on); }},
    RunOption{.name = "nvtx",
              .group = Group::looking,
              .arity = Arity::flag,
              .help = "NVTX ranges of steps, phases and ops, for Nsight Systems",
              .apply = [](In text, E&, R& r) { r.nvtx = parse_flag(text) ? Nvtx::on : Nvtx::off; },
              .write = [](const E&, const R& r) { return write_flag(r.nvtx == Nvtx::on); }},
    RunOption{.name = "inject",
              .value = "WHAT[,WHAT...]",
              .group = Group::looking,
              .arity = Arity::repeated_list,
              .help = "faults: slow-rank=3:1.2 slow-link=0-1:2 jitter=5% ...",
              .apply = [](In text, E&, R& r) { r.injections = parse_injections(text); },
              .write = [](const E&, const R& r) { return write_injections(r.injections); }},
    RunOption{.name = "gemm-algorithms",
              .value = "RUN.h5",
              .default_text = "choose by timing",
              .group = Group::looking,
              .help = "use the GEMM algorithms that this run chose",
              .apply = [](In text, E&, R& r) { r.gemm_algorithms = parse_path(text); },
              .write = [](const E&, const R& r) { return write_path(r.gemm_algorithms); }},
};

const std::array file_rows{

    RunOption{.name = "output",
              .value = "FILE.h5",
              .default_text = "isoscale-<workloads>-<host>-<time>.h5",
              .group = Group::basic,
              .help = "the run file",
              .apply = [](In text, E&, R& r) { r.output = parse_path(text); },
              .write = [](const E&, const R& r) { return write_path(r.output); }},
    RunOption{.name = "fallback-dir",
              .value = "DIR",
              .default_text = "TMPDIR",
              .group = Group::file,
              .help = "where to continue the file when it cannot be written",
              .apply = [](In text, E&, R& r) { r.fallback_dir = parse_path(text); },
              .write = [](const E&, const R& r) { return write_path(r.fallback_dir); }},
    RunOption{.name = "force",
              .group = Group::file,
              .arity = Arity::flag,
              .help = "overwrite the run file when it exists",
              .apply =
                  [](In text, E&, R& r) {
                    r.if_exists = parse_flag(text) ? IfExists::overwrite : IfExists::refuse;
                  },
              .write = [](const E&,
                          const R& r) { return write_flag(r.if_exists == IfExists::overwrite); }},
    RunOption{.name = "allow",
              .value = "CHECK[,CHECK...]",
              .group = Group::file,
              .arity = Arity::repeated_list,
              .help = "continue although these preflight checks say stop",
              .apply = [](In text, E&, R& r) { r.allowed = parse_names(text); },
              .write = [](const E&, const R& r) { return write_names(r.allowed); }},
    RunOption{.name = "dry-run",
              .group = Group::basic,
              .arity = Arity::flag,
              .help = "print the plan (points, memory, FLOP, bytes) and run nothing",
              .apply = [](In text, E&,
                          R& r) { r.mode = parse_flag(text) ? Mode::dry_run : Mode::measure; },
              .write = [](const E&, const R& r) { return write_flag(r.mode == Mode::dry_run); }},
    RunOption{.name = "on",
              .value = "NAME|FILE.toml",
              .group = Group::file,
              .help = "machine of a dry run (isoscale list systems)",
              .apply = [](In text, E&, R& r) { r.on = parse_path(text).string(); },
              .write = [](const E&, const R& r) { return r.on.empty() ? "" : toml_string(r.on); }},
    RunOption{
        .name = "quiet",
        .group = Group::file,
        .arity = Arity::flag,
        .help = "no progress, and nothing on standard output",
        .apply =
            [](In text, E&, R& r) {
              r.verbosity = parse_flag(text) ? Verbosity::quiet : Verbosity::normal;
            },
        .write = [](const E&, const R& r) { return write_flag(r.verbosity == Verbosity::quiet); }},
    RunOption{.name = "resume",
              .value = "FILE.h5",
              .group = Group::file,
              .help = "finish this run, with its settings",
              .apply = [](In text, E&, R& r) { r.resume = parse_path(text); },
              // The option belongs to one launch, while the configuration in the file describes the
              // whole run.
              .write = [](const E&, const R&) { return std::string{}; }},
    RunOption{.name = "retry",
              .value = "failed|hung",
              .default_text = "failed",
              .group = Group::file,
              .help = "what --resume measures again; hung: both",
              .apply =
                  [](In text, E&, R& r) {
                    r.retry = parse_choice(text, {Retry::failed, Retry::hung});
                  },
              .write = [](const E&, const R&) { return std::string{}; }},
};

}  // namespace

std::string_view name(Group group) {
  constexpr std::array<std::string_view, 6> names{"Basic",    "What",    "Where",
                                                  "How long", "Looking", "File"};
  return names[static_cast<std::size_t>(group)];
}

std::span<const RunOption> run_options() {
  static const std::vector<RunOption> options = [] {
    std::vector<RunOption> all;
    using Rows = std::span<const RunOption>;
    for (const Rows rows : {Rows{what_rows}, Rows{where_rows}, Rows{how_long_rows},
                            Rows{looking_rows}, Rows{file_rows}}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }();
  return options;
}

std::string key_of(const RunOption& option) {
  std::string key{option.name};
  std::ranges::replace(key, '-', '_');
  return key;
}

const RunOption* find_option(std::string_view long_name) {
  const auto options = run_options();
  const auto found = std::ranges::find(options, long_name, &RunOption::name);
  return found == options.end() ? nullptr : &*found;
}

}  // namespace isoscale::config
