// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/option_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "config/option_values.hpp"
#include "config/values.hpp"
#include "workloads/toml_text.hpp"

namespace isoscale::config {
namespace {

using mesh::Placement;
using workloads::Scaling;
using workloads::toml_string;

constexpr int most_blas_threads = 4096;
constexpr int most_trace_steps = 1000;
constexpr int most_trace_ranks = 1 << 24;

// The rows of the table take and leave what they need of these.
using In = std::string_view;
using E = Experiment;
using R = RunConfig;

const std::array options{

    RunOption{.name = "workload",
              .value = "NAME[,NAME...]",
              .default_text = "the quick suite",
              .group = Group::what,
              .arity = Arity::list,
              .scope = Scope::experiment,
              .help = "what to measure (isoscale list workloads)",
              .apply = [](In text, E&, R&) { (void)parse_names(text); },
              .write = [](const E& e, const R&) { return toml_string(e.workload); }},
    RunOption{.name = "suite",
              .value = "NAME",
              .group = Group::what,
              .help = "experiments with limits of their own (isoscale list suites)",
              .apply = [](In, E&, R&) {},
              .write = [](const E&, const R&) { return std::string{}; }},
    RunOption{.name = "model",
              .value = "NAME|FILE.toml",
              .default_text = "tiny",
              .group = Group::what,
              .scope = Scope::experiment,
              .help = "transformer to be shaped after (isoscale list models)",
              .apply = [](In text, E& e, R&) { e.base.model = workloads::load_model(text); },
              .write =
                  [](const E& e, const R&) {
                    return is_preset(e.base.model) ? toml_string(e.base.model.name) : "";
                  }},
    RunOption{
        .name = "dtype",
        .value = "f64|f32|tf32|f16|bf16|fp8",
        .default_text = "f32",
        .group = Group::what,
        .scope = Scope::experiment,
        .help = "what is computed in; the host does f64 and f32",
        .apply = [](In text, E& e, R&) { e.base.precision = workloads::parse_precision(text); },
        .write = [](const E& e,
                    const R&) { return toml_string(workloads::name(e.base.precision)); }},
    RunOption{.name = "set",
              .value = "KEY=VALUE",
              .group = Group::what,
              .arity = Arity::repeated,
              .scope = Scope::experiment,
              .help = "a workload's option (isoscale list options WORKLOAD)",
              .apply = [](In text, E&, R&) { (void)parse_assignment(text); },
              .write = [](const E& e, const R&) { return write_options(e.base.options); }},
    RunOption{
        .name = "seed",
        .value = "N",
        .default_text = "1",
        .group = Group::what,
        .scope = Scope::experiment,
        .help = "of all random numbers",
        .apply =
            [](In text, E& e, R&) {
              e.base.seed = parse_number(text, 0, std::numeric_limits<std::uint64_t>::max());
            },
        .write = [](const E& e, const R&) { return toml_string(std::to_string(e.base.seed)); }},
    RunOption{.name = "mesh",
              .value = "AXIS=N[,AXIS=N...]",
              .default_text = "by workload",
              .group = Group::where,
              .scope = Scope::experiment,
              .help = "axis extents; a dp not named absorbs the rest",
              .apply = [](In text, E& e, R&) { e.mesh = parse_mesh(text); },
              .write = [](const E& e,
                          const R&) { return e.mesh.empty() ? "" : toml_string(to_text(e.mesh)); }},
    RunOption{
        .name = "scaling",
        .value = "strong|weak",
        .default_text = "strong",
        .group = Group::where,
        .scope = Scope::experiment,
        .help = "same work over more ranks, or more work with them",
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
              .help = "small points fill nodes, or are dealt out over them",
              .apply =
                  [](In text, E& e, R&) {
                    e.placement = parse_choice(text, {Placement::packed, Placement::spread});
                  },
              .write = [](const E& e, const R&) { return toml_string(mesh::name(e.placement)); }},
    RunOption{.name = "device",
              .value = "auto|cuda|host",
              .default_text = "auto",
              .group = Group::where,
              .help = "what plays; auto says what it chose and why",
              .apply =
                  [](In text, E&, R& r) {
                    r.device = parse_choice(text, {Device::automatic, Device::cuda, Device::host});
                  },
              .write = [](const E&, const R& r) { return toml_string(name(r.device)); }},
    RunOption{.name = "ranks",
              .value = "N[,N...]|all",
              .default_text = "powers of two, and the world",
              .group = Group::where,
              .arity = Arity::list,
              .help = "rank counts; all = every one",
              .apply = [](In text, E&, R& r) { apply_ranks(text, r); },
              .write = [](const E&, const R& r) { return write_ranks(r); }},
    RunOption{.name = "fill",
              .value = "idle|replicas",
              .default_text = "idle",
              .group = Group::where,
              .help = "ranks outside a point sleep, or play copies of it",
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

    RunOption{
        .name = "precision",
        .value = "RATIO",
        .default_text = "1%",
        .group = Group::how_long,
        .help = "stop a point when its step time is known this well",
        .apply = [](In text, E&, R& r) { r.precision = parse_precision_goal(text); },
        .write = [](const E&, const R& r) { return toml_string(fmt::format("{}", r.precision)); }},
    RunOption{
        .name = "max-time",
        .value = "TIME",
        .default_text = "30s",
        .group = Group::how_long,
        .help = "stop a point after this time in ms, s, m or h",
        .apply = [](In text, E&, R& r) { r.max_time = parse_time_limit(text); },
        .write = [](const E&,
                    const R& r) { return toml_string(fmt::format("{}s", r.max_time.value())); }},
    RunOption{
        .name = "trace-steps",
        .value = "N",
        .default_text = "4",
        .group = Group::looking,
        .help = "traced steps kept per point, for the breakdown",
        .apply = [](In text, E&, R& r) { r.trace_steps = parse_int(text, 0, most_trace_steps); },
        .write = [](const E&, const R& r) { return std::to_string(r.trace_steps); }},
    RunOption{
        .name = "trace-ranks",
        .value = "N",
        .default_text = "64",
        .group = Group::looking,
        .help = "ranks whose traces are kept, of all stages first",
        .apply = [](In text, E&, R& r) { r.trace_ranks = parse_int(text, 1, most_trace_ranks); },
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
              .help = "faults: slow-rank=3:1.2 slow-link=0-1:2 jitter=5% clock=2:5ms",
              .apply = [](In text, E&, R& r) { r.injections = parse_injections(text); },
              .write = [](const E&, const R& r) { return write_injections(r.injections); }},
    RunOption{.name = "gemm-algorithms",
              .value = "RUN.h5",
              .default_text = "choose by timing",
              .group = Group::looking,
              .help = "use the GEMM algorithms that this run chose",
              .apply = [](In text, E&, R& r) { r.gemm_algorithms = parse_path(text); },
              .write = [](const E&, const R& r) { return write_path(r.gemm_algorithms); }},
    RunOption{.name = "output",
              .value = "FILE.h5",
              .default_text = "isoscale-<workloads>-<host>-<time>.h5",
              .group = Group::file,
              .help = "the run file",
              .apply = [](In text, E&, R& r) { r.output = parse_path(text); },
              .write = [](const E&, const R& r) { return write_path(r.output); }},
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
              .help = "go on though these checks of preflight say stop",
              .apply = [](In text, E&, R& r) { r.allowed = parse_names(text); },
              .write = [](const E&, const R& r) { return write_names(r.allowed); }},
    RunOption{.name = "dry-run",
              .group = Group::file,
              .arity = Arity::flag,
              .help = "print the plan (points, memory, FLOP, bytes) and run nothing",
              .apply = [](In text, E&,
                          R& r) { r.mode = parse_flag(text) ? Mode::dry_run : Mode::measure; },
              .write = [](const E&, const R& r) { return write_flag(r.mode == Mode::dry_run); }},
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
};

}  // namespace

std::string_view name(Group group) {
  constexpr std::array<std::string_view, 5> names{"What", "Where", "How long", "Looking", "File"};
  return names[static_cast<std::size_t>(group)];
}

std::span<const RunOption> run_options() { return options; }

std::string key_of(const RunOption& option) {
  std::string key{option.name};
  std::ranges::replace(key, '-', '_');
  return key;
}

const RunOption* find_option(std::string_view long_name) {
  const auto* const found = std::ranges::find(options, long_name, &RunOption::name);
  return found == options.end() ? nullptr : found;
}

}  // namespace isoscale::config
