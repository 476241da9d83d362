// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "system/preflight/job_view.hpp"
#include "system/preflight/rules.hpp"
#include "system/preflight/xid.hpp"

/// Errors that GPUs have had.
namespace isoscale::system {
namespace {

constexpr std::string_view on_cuda = "run with --device cuda where NVML answers";

/// Data-centre models; others have no ECC to speak of, or it is a choice. By whole words of the
/// name: an "NVIDIA RTX A4000" is no A40.
bool is_data_centre(const CheckedGpu& gpu) {
  constexpr std::array<std::string_view, 22> models{
      "A100",  "A800", "A30",  "A40",  "A10",   "A16",   "A2",   "H100", "H800", "H200", "H20",
      "GH200", "B100", "B200", "B300", "GB200", "GB300", "V100", "L40",  "L40S", "L4",   "T4"};
  std::string_view rest = gpu.name ? std::string_view{*gpu.name} : std::string_view{};
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(" -"), rest.size());
    if (std::ranges::find(models, rest.substr(0, end)) != models.end()) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

Results judge_ecc(const JobFacts& job) {
  Findings findings;
  for (const JobGpu& one : job_gpus(job)) {
    if (!findings.knows(one.gpu->ecc) || *one.gpu->ecc || !is_data_centre(*one.gpu)) continue;
    findings.warn(
        one.place(),
        {.what = "ECC is off",
         .cost = "memory errors go unseen; where memory is GDDR, bandwidth is higher than "
                 "on machines that have it on",
         .fix = "nvidia-smi -e 1, then reset the GPU"});
  }
  return std::move(findings).results({.fine = "on, on GPUs that are sold with it",
                                      .unknown = no_gpus(job, "NVML"),
                                      .how = std::string{on_cuda}});
}

Results judge_uncorrected(const JobFacts& job) {
  Findings findings;
  for (const JobGpu& one : job_gpus(job)) {
    if (!findings.knows(one.gpu->ecc_uncorrected) || *one.gpu->ecc_uncorrected == 0) continue;
    findings.warn(one.place(),
                  {.what = base::counted(*one.gpu->ecc_uncorrected, "uncorrected memory error") +
                           " since the driver was loaded",
                   .cost = "programs are killed by them; results since then are in doubt",
                   .fix = "reset the GPU; take it out of service if they come again"});
  }
  return std::move(findings).results({.fine = "none since the drivers were loaded",
                                      .unknown = no_gpus(job, "NVML"),
                                      .how = std::string{on_cuda}});
}

/// What the GPU says of its row remapping, or of retired pages; "" when all is well.
std::string memory_trouble(const CheckedGpu& gpu) {
  // NVIDIA's documentation of dynamic page retirement: 60 pages and more are a reason to return it.
  constexpr std::int64_t most_pages = 60;
  if (gpu.remap_failed == true) return "a memory row could not be remapped";
  if (gpu.remap_pending == true) return "a memory row waits to be remapped";
  if (gpu.retired_pages && *gpu.retired_pages >= most_pages) {
    return fmt::format("{} pages of memory are retired", *gpu.retired_pages);
  }
  return {};
}

Results judge_remap(const JobFacts& job) {
  Findings findings;
  for (const JobGpu& one : job_gpus(job)) {
    const CheckedGpu& gpu = *one.gpu;
    if (!gpu.remap_failed && !gpu.remap_pending && !gpu.retired_pages) {
      findings.miss();
      continue;
    }
    findings.know();
    const std::string trouble = memory_trouble(gpu);
    if (trouble.empty()) continue;
    findings.warn(one.place(), {.what = trouble,
                                .cost = "this memory has errors until it is repaired",
                                .fix = gpu.remap_pending == true && gpu.remap_failed != true
                                           ? "reset the GPU: nvidia-smi -r"
                                           : "take the GPU out of service and return it"});
  }
  return std::move(findings).results({.fine = "no row waits to be remapped, few pages are retired",
                                      .unknown = no_gpus(job, "NVML"),
                                      .how = std::string{on_cuda}});
}

Finding finding_of(int code) {
  const std::optional<Xid> xid = find_xid(code);
  if (!xid) {
    return {.what = fmt::format("Xid {} in what the kernel's log still has", code),
            .cost = "its effect on speed is unknown",
            .fix = "look it up at docs.nvidia.com/deploy/xid-errors"};
  }
  return {.what = fmt::format("Xid {} in what the kernel's log still has: {}", code, xid->meaning),
          .cost = xid->origin == XidOrigin::hardware ? "the GPU may be slow, or fail during the run"
                                                     : "the GPU may still be in a bad state",
          .fix = std::string{xid->action}};
}

/// Those that a program's own mistake leaves behind say nothing of the GPU.
Results judge_xid(const JobFacts& job) {
  Findings findings;
  for (const JobGpu& one : job_gpus(job)) {
    if (!findings.knows(one.gpu->xids)) continue;
    for (const int code : *one.gpu->xids) {
      const std::optional<Xid> xid = find_xid(code);
      if (xid && xid->origin == XidOrigin::program) continue;
      findings.warn(one.place(), finding_of(code));
    }
  }
  return std::move(findings).results(
      {.fine = "none in the kernels' logs but of programs' own mistakes",
       .unknown = no_gpus(job, "the kernel's log"),
       .how = "let users read the kernel's log (kernel.dmesg_restrict=0)"});
}

constexpr std::array gpu_error_table{
    Check{"ecc", "whether data-centre GPUs correct memory errors", judge_ecc},
    Check{"ecc-errors", "uncorrected memory errors", judge_uncorrected},
    Check{"row-remap", "memory rows that wait for remapping or cannot be, and retired pages",
          judge_remap},
    Check{"xid", "errors of GPUs in the kernel's log", judge_xid},
};

}  // namespace

std::span<const Check> gpu_error_checks() { return gpu_error_table; }

}  // namespace isoscale::system
