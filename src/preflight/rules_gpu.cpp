// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "base/text.hpp"
#include "preflight/job_view.hpp"
#include "preflight/rules.hpp"
#include "statistics/estimate.hpp"
#include "units/text.hpp"

/// These rules check GPUs: the errors that they have had, their settings, and what they do now.
namespace isoscale::preflight {
namespace {

/// The usual origin of a driver error (Xid); it decides whether the GPU is fit for a measurement.
enum class XidOrigin { program, hardware, either };

struct Xid {
  int code = 0;
  XidOrigin origin = XidOrigin::either;
  std::string_view meaning, action;
};

constexpr std::string_view no_action = "check the program that ran before, if it comes again";
constexpr std::string_view reset = "reset the GPU when no work is on it: nvidia-smi -r";
constexpr std::string_view drain =
    "take the node out of service and run the vendor's diagnostics (dcgmi diag -r 3)";

constexpr std::array xids{
    Xid{13, XidOrigin::program, "an exception in a program's kernel", no_action},
    Xid{31, XidOrigin::program, "a page fault: a program used an address that is not its own",
        no_action},
    Xid{43, XidOrigin::program, "the GPU stopped a program's work after its error", no_action},
    Xid{45, XidOrigin::program, "work was torn down after a program ended or failed", no_action},
    Xid{48, XidOrigin::hardware, "an uncorrectable (double bit) ECC error", reset},
    Xid{62, XidOrigin::hardware, "the power management unit halted", reset},
    Xid{63, XidOrigin::hardware, "a memory row was remapped, or a page retired", reset},
    Xid{64, XidOrigin::hardware, "a memory row could not be remapped, or a page not retired",
        drain},
    Xid{74, XidOrigin::hardware, "an NVLink error", drain},
    Xid{79, XidOrigin::hardware, "the GPU has fallen off the bus", drain},
    Xid{92, XidOrigin::hardware, "a high rate of corrected (single bit) ECC errors", drain},
    Xid{94, XidOrigin::hardware, "an uncorrectable ECC error, contained to one program", reset},
    Xid{95, XidOrigin::hardware, "an uncorrectable ECC error, not contained", reset},
    Xid{119, XidOrigin::either, "the GPU's system processor (GSP) did not answer in time", reset},
    Xid{120, XidOrigin::either, "the GPU's system processor (GSP) failed", reset},
};

/// Returns the entry of an Xid error; nullopt if the code is not in the table. The table follows
/// NVIDIA's documentation "Xid Errors" (docs.nvidia.com/deploy/xid-errors).
std::optional<Xid> find_xid(int code) {
  const auto* const found = std::ranges::find(xids, code, &Xid::code);
  return found == xids.end() ? std::nullopt : std::optional{*found};
}

constexpr std::string_view on_cuda = "run with --device cuda where NVML answers";

/// True for data-centre models. Other models have little or no ECC memory, or leave ECC to the
/// user. Whole words of the name are compared: an "NVIDIA RTX A4000" is no A40.
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

/// Returns what is wrong with the remapped rows or retired pages of a GPU; "" if all is well.
std::string memory_trouble(const CheckedGpu& gpu) {
  // By NVIDIA's documentation of dynamic page retirement, 60 pages or more are a reason to return
  // the GPU.
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

/// Warns of Xids, except those caused by a program's own mistake, which say nothing about the GPU.
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

Results of_gpus(const JobFacts& job, Findings findings, std::string fine) {
  return std::move(findings).results({.fine = std::move(fine),
                                      .unknown = no_gpus(job, "NVML"),
                                      .how = "run with --device cuda where NVML answers"});
}

Results judge_mig(const JobFacts& job) {
  Findings findings;
  for (const JobGpu& one : job_gpus(job)) {
    if (!findings.knows(one.gpu->mig) || !*one.gpu->mig) continue;
    findings.warn(one.place(),
                  {.what = "MIG is on",
                   .cost = "ranks have a part of the GPU, and NVLink and peer access are off",
                   .fix = "nvidia-smi -mig 0, or ask for nodes without MIG"});
  }
  return of_gpus(job, std::move(findings), "off on all GPUs");
}

Results judge_compute_mode(const JobFacts& job) {
  Findings findings;
  for (const JobGpu& one : job_gpus(job)) {
    if (!findings.knows(one.gpu->compute_mode)) continue;
    const std::string& mode = *one.gpu->compute_mode;
    const bool is_shared = mode.starts_with("exclusive") && one.ranks.size() > 1;
    if (mode != "prohibited" && !is_shared) continue;
    const std::string ranks = base::counted(one.ranks.size(), "rank");
    findings.stop(one.place(),
                  {.what = is_shared ? fmt::format("compute mode '{}' with {}", mode, ranks)
                                     : "compute mode 'prohibited'",
                   .cost = "ranks cannot make a CUDA context on it",
                   .fix = "nvidia-smi -c DEFAULT"});
  }
  return of_gpus(job, std::move(findings), "lets every rank compute");
}

/// Warns if clocks are limited before there is any load. Clocks that somebody set are left to the
/// check application-clock.
Results judge_throttle(const JobFacts& job) {
  constexpr std::array<std::string_view, 3> settings{"application clock settings",
                                                     "display clock settings", "sync boost"};
  Findings findings;
  for (const JobGpu& one : job_gpus(job)) {
    if (!findings.knows(one.gpu->throttle_reasons)) continue;
    for (const std::string& reason : *one.gpu->throttle_reasons) {
      if (std::ranges::find(settings, reason) != settings.end()) continue;
      findings.warn(one.place(),
                    {.what = fmt::format("clocks are held down now: {}", reason),
                     .cost = "the GPU computes slower than its like from the start",
                     .fix = "check its power supply and cooling: nvidia-smi -q -d PERFORMANCE"});
    }
  }
  return of_gpus(job, std::move(findings), "nothing holds clocks down now");
}

Results judge_persistence(const JobFacts& job) {
  Findings findings;
  for (const JobGpu& one : job_gpus(job)) {
    if (!findings.knows(one.gpu->persistence) || *one.gpu->persistence) continue;
    findings.warn(one.place(),
                  {.what = "persistence mode is off",
                   .cost = "little: the driver unloads between programs, so that start-up takes "
                           "longer and settings and error counts are lost",
                   .fix = "run nvidia-persistenced"});
  }
  return of_gpus(job, std::move(findings), "on, on all GPUs");
}

/// Returns a text about processes on a GPU that are not ranks of its node; "" if there are none.
/// nullopt if they cannot be told from ranks: in a container, ranks have other process ids than the
/// driver reports.
std::optional<std::string> foreign_processes(const JobGpu& one, const std::set<std::int64_t>& own) {
  const std::optional<std::vector<std::int64_t>>& processes = one.gpu->processes;
  if (!processes) return std::nullopt;
  std::vector<std::string> others;
  for (const std::int64_t pid : *processes) {
    if (!own.contains(pid)) others.push_back(fmt::format("{}", pid));
  }
  if (others.empty()) return "";
  if (others.size() == processes->size() && !one.ranks.empty()) {
    if (others.size() <= one.ranks.size()) return std::nullopt;
    return fmt::format("{} compute on it, but {} took it", base::counted(others.size(), "process"),
                       base::counted(one.ranks.size(), "rank"));
  }
  return fmt::format("others compute on it: process {}", listed(others));
}

/// Returns the median memory use of the job's GPUs: libraries and buffers of a typical rank.
double usual_use(std::span<const JobGpu> gpus) {
  std::vector<double> used;
  for (const JobGpu& one : gpus) {
    if (one.gpu->memory_used) used.push_back(*one.gpu->memory_used);
  }
  return used.empty() ? 0 : statistics::median(used).value_or(0);
}

Results judge_processes(const JobFacts& job) {
  constexpr double much = 1024.0 * 1024 * 1024;  // ranks of one program differ by less
  Findings findings;
  std::map<int, std::set<std::int64_t>> own;
  for (const CheckedRank& rank : job.ranks) own[rank.node].insert(rank.pid);
  const std::vector<JobGpu> gpus = job_gpus(job);
  const double usual = usual_use(gpus);
  for (const JobGpu& one : gpus) {
    std::optional<std::string> what = foreign_processes(one, own[one.node->node]);
    if ((!what || what->empty()) && one.gpu->memory_used && *one.gpu->memory_used > usual + much) {
      const auto text = [](double bytes) {
        return units::format(units::Bytes{static_cast<std::uint64_t>(bytes)});
      };
      what = fmt::format("{} of its memory are in use, the median is {}",
                         text(*one.gpu->memory_used), text(usual));
    }
    if (!findings.knows(what) || what->empty()) continue;
    findings.warn(one.place(),
                  {.what = *what,
                   .cost = "they take turns with the rank's kernels, and take memory and links",
                   .fix = "end them, or ask for GPUs that are yours alone (srun --exclusive)"});
  }
  return of_gpus(job, std::move(findings), "no process but the job's ranks");
}

constexpr std::array gpu_table{
    Check{"ecc", "whether data-centre GPUs correct memory errors", judge_ecc},
    Check{"ecc-errors", "uncorrected memory errors", judge_uncorrected},
    Check{"row-remap", "memory rows that wait for remapping or cannot be, and retired pages",
          judge_remap},
    Check{"xid", "errors of GPUs in the kernel's log", judge_xid},
    Check{"mig", "whether GPUs are partitioned (MIG)", judge_mig},
    Check{"compute-mode", "whether ranks may compute on their GPU", judge_compute_mode},
    Check{"throttle", "what holds clocks down before there is any load", judge_throttle},
    Check{"persistence", "whether the driver stays loaded between programs", judge_persistence},
    Check{"other-processes", "processes on GPUs that are not of the job", judge_processes},
};

}  // namespace

std::span<const Check> gpu_checks() { return gpu_table; }

}  // namespace isoscale::preflight
