// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "machine/gpu_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::machine {
namespace {

using settings::ShareGpu;

/// Returns a PCI bus id in a canonical form, for comparisons. Ids come with a domain of 4 or 8
/// digits or without one: "0000:1B:00.0", "1b:00.0".
std::string canonical_pci(std::string_view id) {
  std::string text = base::lowered(id);
  if (std::ranges::count(text, ':') == 1) text.insert(0, "0:");
  text.erase(0, std::min(text.find_first_not_of('0'), text.find(':')));
  return text;
}

[[noreturn]] void refuse_none(const GpuView& view) {
  constexpr std::string_view host_fix = "or run with --device host";
  if (view.visible_devices) {
    throw base::usage_error(
        "no GPU is visible to local rank {} on {}, where CUDA_VISIBLE_DEVICES is {}: "
        "unset it, or name GPUs in it that nvidia-smi -L lists, {}",
        view.local_rank, view.host, base::quoted(*view.visible_devices), host_fix);
  }
  throw base::usage_error(
      "no GPU is visible to local rank {} on {}: see whether nvidia-smi -L lists one there, ask "
      "the scheduler for one per rank, {}",
      view.local_rank, view.host, host_fix);
}

/// True if `name` is the index, the UUID or the PCI bus id of a GPU.
bool names(std::string_view name, const VisibleGpu& gpu) {
  return name == std::to_string(gpu.index) || base::lowered(name) == base::lowered(gpu.uuid) ||
         canonical_pci(name) == canonical_pci(gpu.pci_bus_id);
}

int bound_gpu(const GpuView& view, const std::string& bind) {
  const std::vector<std::string_view> entries = base::split(bind, ',');
  const std::size_t ranks = view.seen_by.size();
  if (entries.size() != ranks) {
    throw base::usage_error(
        "--gpu-bind {} names {}, but there {} {} on {}: name one for each rank of a node, in their "
        "order",
        base::quoted(bind), base::counted(entries.size(), "GPU"), ranks == 1 ? "is" : "are",
        base::counted(ranks, "rank"), view.host);
  }
  const std::string_view mine = entries[static_cast<std::size_t>(view.local_rank)];
  for (const VisibleGpu& gpu : view.visible) {
    if (names(mine, gpu)) return gpu.index;
  }
  std::vector<std::string> visible;
  for (const VisibleGpu& gpu : view.visible) {
    visible.push_back(fmt::format("{} ({}, {})", gpu.index, gpu.uuid, gpu.pci_bus_id));
  }
  throw base::usage_error("--gpu-bind: GPU {} is not visible to local rank {} on {}: it sees {}",
                          base::quoted(mine), view.local_rank, view.host, fmt::join(visible, "; "));
}

}  // namespace

int choose_gpu(const GpuView& view, const std::string& bind, ShareGpu share) {
  if (view.visible.empty()) refuse_none(view);
  if (bind != settings::automatic_gpu_bind) return bound_gpu(view, bind);
  const std::size_t gpus = view.visible.size();
  const std::size_t ranks = view.seen_by.size();
  const auto local_rank = static_cast<std::size_t>(view.local_rank);
  const auto unlike = std::ranges::find_if(
      view.seen_by, [&](const auto& seen) { return seen != view.seen_by[local_rank]; });
  const bool all_alike = unlike == view.seen_by.end();
  const bool each_sees_one =
      std::ranges::all_of(view.seen_by, [](const auto& seen) { return seen.size() == 1; });
  if (!all_alike && each_sees_one) return view.visible.front().index;
  if (share == ShareGpu::yes) return view.visible[local_rank % gpus].index;
  if (!all_alike) {
    throw base::usage_error(
        "the ranks on {0} see different GPUs: local rank {1} sees {2}, local rank {3} sees {4}: "
        "let the scheduler show each rank one GPU or all of the node, or name one per rank with "
        "--gpu-bind",
        view.host, view.local_rank, gpus, unlike - view.seen_by.begin(), unlike->size());
  }
  if (gpus < ranks) {
    throw base::usage_error(
        "{} has {}, which see only {}: start fewer ranks per node, make more GPUs visible, or let "
        "ranks share with --share-gpu (for correctness, not for speed)",
        view.host, base::counted(ranks, "rank"), base::counted(gpus, "GPU"));
  }
  return view.visible[local_rank].index;
}

bool share_a_gpu(std::span<const GpuUse> uses) {
  std::set<std::string_view> taken;
  return std::ranges::any_of(
      uses, [&](const GpuUse& use) { return !taken.insert(use.pci_bus_id).second; });
}

void refuse_shared_gpus(std::span<const GpuUse> uses, const std::string& host, ShareGpu share) {
  if (share == ShareGpu::yes) return;
  std::map<std::string_view, int> owner;
  for (const GpuUse& use : uses) {
    const auto [first, is_new] = owner.try_emplace(use.pci_bus_id, use.rank);
    if (is_new) continue;
    throw base::usage_error(
        "ranks {} and {} on {} are on one GPU or on MIG instances of it, {}: start one rank per "
        "GPU, name others with --gpu-bind, or let them share with --share-gpu (for correctness, "
        "not for speed)",
        first->second, use.rank, host, use.pci_bus_id);
  }
}

std::vector<program::Precision> precisions_of(int major, int minor) {
  using program::Precision;
  constexpr int ten = 10;
  const int capability = major * ten + minor;
  struct Need {
    Precision precision;
    int capability;
  };
  constexpr std::array needs{Need{Precision::f64, 0},   Need{Precision::f32, 0},
                             Need{Precision::tf32, 80}, Need{Precision::f16, 53},
                             Need{Precision::bf16, 80}, Need{Precision::fp8, 89}};
  std::vector<Precision> precisions;
  for (const Need& need : needs) {
    if (capability >= need.capability) precisions.push_back(need.precision);
  }
  return precisions;
}

std::optional<std::string> driver_problem(int driver_version, int runtime_version) {
  constexpr int thousand = 1000, ten = 10;
  if (driver_version == 0) {
    return "no NVIDIA driver was found: install one, start the container with its GPUs (docker "
           "--gpus all, apptainer --nv), or run with --device host";
  }
  const int driver_major = driver_version / thousand, runtime_major = runtime_version / thousand;
  if (driver_major >= runtime_major) return std::nullopt;
  // These are the oldest driver branches that support each major version of CUDA (NVIDIA, CUDA
  // Compatibility).
  const std::string_view branch = runtime_major == 13   ? " (branch 580 or newer)"
                                  : runtime_major == 12 ? " (branch 525 or newer)"
                                                        : "";
  return fmt::format(
      "the NVIDIA driver serves CUDA up to {}.{}, and this program was built with CUDA {}.{}: "
      "install a driver for CUDA {}{}, or build with a toolkit of CUDA {}",
      driver_major, driver_version % thousand / ten, runtime_major,
      runtime_version % thousand / ten, runtime_major, branch, driver_major);
}

std::optional<std::string> nccl_problem(int version) {
  // NCCL encodes the major version times 10,000, before 2.9 times 1000: 2708 = 2.7.8.
  constexpr int oldest = 21'800, first_of_wide = 10'000, hundred = 100;
  if (version >= oldest) return std::nullopt;
  const int major_unit = version < first_of_wide ? 1000 : first_of_wide;
  return fmt::format(
      "NCCL {}.{}.{} is too old: 2.18 or newer is needed (for ncclCommSplit); load or install one, "
      "and see with ldd libisoscale_cuda.so which libnccl.so.2 is found",
      version / major_unit, version % major_unit / hundred, version % hundred);
}

}  // namespace isoscale::machine
