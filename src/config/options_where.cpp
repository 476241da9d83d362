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

using mesh::Placement;
using workloads::Scaling;
using workloads::toml_string;

constexpr int most_blas_threads = 4096;
constexpr int most_ranks = 1 << 24;
constexpr int most_ranks_per_node = 4096;

// The rows take and leave what they need of these.
using In = std::string_view;
using E = Experiment;
using R = RunConfig;

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

}  // namespace

std::span<const RunOption> where_options() { return where_rows; }

}  // namespace isoscale::config
