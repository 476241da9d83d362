// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <array>

#include "config/option_rows.hpp"
#include "config/option_values.hpp"
#include "config/values.hpp"
#include "workloads/toml_files.hpp"

namespace isoscale::config {
namespace {

using workloads::toml_string;

constexpr int most_trace_steps = 1000;
constexpr int most_trace_ranks = 1 << 24;

// The rows take and leave what they need of these.
using In = std::string_view;
using E = Experiment;
using R = RunConfig;

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
    RunOption{
        .name = "trace-ranks",
        .value = "N",
        .default_text = "64",
        .group = Group::looking,
        .help = "ranks whose traces are kept, from every stage",
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
              // Of one launch, not of the run: the echo is what is gone on with.
              .write = [](const E&, const R&) { return std::string{}; }},
};

}  // namespace

std::span<const RunOption> how_long_options() { return how_long_rows; }
std::span<const RunOption> looking_options() { return looking_rows; }
std::span<const RunOption> file_options() { return file_rows; }

}  // namespace isoscale::config
