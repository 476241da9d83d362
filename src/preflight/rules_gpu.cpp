// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "preflight/rules.hpp"
#include "statistics/estimate.hpp"

/// These rules check GPUs: past errors, settings, and whether anything else uses them now.
namespace isoscale::preflight {
namespace {

using enum Verdict;

/// The usual cause of a driver error (Xid). An error caused by a program is no fault of the GPU.
enum class XidOrigin { program, hardware, either };

struct Xid {
  int code = 0;
  XidOrigin origin = XidOrigin::either;
  std::string_view meaning, action;
};

constexpr std::string_view no_action = "if it comes again, check the program that ran at that time";
constexpr std::string_view reset = "reset the GPU when nothing runs on it: nvidia-smi -r";
constexpr std::string_view drain =
    "take the node out of service and run the vendor's diagnostics (dcgmi diag -r 3)";

/// The table follows NVIDIA's documentation "Xid Errors" (docs.nvidia.com/deploy/xid-errors).
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

/// True for data-centre models. Other models have little or no ECC memory, or leave the choice of
/// ECC to the user. Whole words of the name are compared, so that an "NVIDIA RTX A4000" is not
/// taken for an A40.
bool is_data_centre(const GpuFacts& gpu) {
  constexpr std::array<std::string_view, 22> models{
      "A100",  "A800", "A30",  "A40",  "A10",   "A16",   "A2",   "H100", "H800", "H200", "H20",
      "GH200", "B100", "B200", "B300", "GB200", "GB300", "V100", "L40",  "L40S", "L4",   "T4"};
  std::string name = gpu.name.value_or("");
  std::ranges::replace(name, '-', ' ');
  return std::ranges::any_of(base::split(name, ' '), [&](std::string_view word) {
    return std::ranges::find(models, word) != models.end();
  });
}

Answer judge_ecc(const JobGpu& one) {
  if (!one.gpu->ecc) return not_known;
  return {.wrong = *one.gpu->ecc || !is_data_centre(*one.gpu) ? "" : "ECC is off"};
}

Answer judge_uncorrected(const JobGpu& one) {
  const std::optional<std::int64_t>& errors = one.gpu->ecc_uncorrected;
  if (!errors) return not_known;
  if (*errors == 0) return nothing_wrong;
  return {.wrong =
              base::counted(*errors, "uncorrected memory error") + " since the driver was loaded"};
}

Answer judge_remap(const JobGpu& one) {
  // NVIDIA's documentation of dynamic page retirement gives 60 retired pages as a reason to return
  // the GPU.
  constexpr std::int64_t most_pages = 60;
  const GpuFacts& gpu = *one.gpu;
  if (!gpu.remap_failed && !gpu.remap_pending && !gpu.retired_pages) return not_known;
  if (gpu.remap_failed == true) return wrong("a memory row could not be remapped");
  if (gpu.remap_pending == true) {
    return {.wrong = "a memory row waits to be remapped", .fix = "reset the GPU: nvidia-smi -r"};
  }
  if (gpu.retired_pages.value_or(0) < most_pages) return nothing_wrong;
  return wrong("{} pages of memory are retired", *gpu.retired_pages);
}

/// Warns of Xids (error codes of the driver). Xids that a program's own mistakes cause are left
/// out, since they say nothing about the GPU.
void judge_xid(Findings& findings, std::span<const JobGpu> gpus, const JobFacts& job) {
  findings.otherwise.unknown = no_gpus(job, "the kernel's log");
  for (const JobGpu& one : gpus) {
    if (!findings.knows(one.gpu->xids)) continue;
    for (const int code : *one.gpu->xids) {
      std::string what = fmt::format("the kernel's log has Xid {}", code);
      const auto* const xid = std::ranges::find(xids, code, &Xid::code);
      if (xid == xids.end()) {
        findings.add(one.place(), {.wrong = std::move(what),
                                   .cost = "its effect on speed is unknown",
                                   .fix = "look it up at docs.nvidia.com/deploy/xid-errors"});
      } else if (xid->origin != XidOrigin::program) {
        findings.add(one.place(), {.wrong = fmt::format("{}: {}", what, xid->meaning),
                                   .cost = xid->origin == XidOrigin::hardware
                                               ? "the GPU may be slow, or fail during the run"
                                               : "the GPU may still be in a bad state",
                                   .fix = xid->action});
      }
    }
  }
}

Answer judge_compute_mode(const JobGpu& one) {
  if (!one.gpu->compute_mode) return not_known;
  const std::string& mode = *one.gpu->compute_mode;
  if (one.ranks.empty()) return nothing_wrong;
  if (mode == "prohibited") {
    return {.wrong = "compute mode 'prohibited'",
            .cost = "ranks cannot create a CUDA context",
            .verdict = stop};
  }
  if (!mode.starts_with("exclusive") || one.ranks.size() < 2) return nothing_wrong;
  return wrong("compute mode '{}', but {} use it", mode, base::counted(one.ranks.size(), "rank"));
}

/// Warns if GPU clocks are reduced before there is any load. Clock limits that a user or
/// administrator has set are left to the check application-clock.
void judge_throttle(Findings& findings, std::span<const JobGpu> gpus, const JobFacts&) {
  constexpr std::array<std::string_view, 3> settings{"application clock settings",
                                                     "display clock settings", "sync boost"};
  for (const JobGpu& one : gpus) {
    if (!findings.knows(one.gpu->throttle_reasons)) continue;
    for (const std::string& reason : *one.gpu->throttle_reasons) {
      if (std::ranges::find(settings, reason) != settings.end()) continue;
      findings.add(one.place(), wrong("clocks are reduced now: {}", reason));
    }
  }
}

/// Returns a text about processes on a GPU that are not ranks of the job; "" if there are none.
/// nullopt if the processes are unknown, or cannot be told from ranks: in a container, ranks have
/// other process ids than those that the driver reports.
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
    return fmt::format("{} use it, but only {} should", base::counted(others.size(), "process"),
                       base::counted(one.ranks.size(), "rank"));
  }
  return fmt::format("processes outside the job use it: {}", listed(others));
}

/// Returns the median of the memory in use on the job's GPUs. A rank's libraries and buffers are
/// assumed to use this much.
double usual_use(std::span<const JobGpu> gpus) {
  std::vector<double> used;
  for (const JobGpu& one : gpus) {
    if (one.gpu->memory_used) used.push_back(*one.gpu->memory_used);
  }
  return used.empty() ? 0 : statistics::median(used).value_or(0);
}

void judge_processes(Findings& findings, std::span<const JobGpu> gpus, const JobFacts& job) {
  // The memory use of a program's ranks differs by less than this number of bytes.
  constexpr double much = 1024.0 * 1024 * 1024;
  std::map<int, std::set<std::int64_t>> own;
  for (const CheckedRank& rank : job.ranks) own[rank.node].insert(rank.pid);
  const double usual = usual_use(gpus);
  for (const JobGpu& one : gpus) {
    std::optional<std::string> what = foreign_processes(one, own[one.node->node]);
    const double used = one.gpu->memory_used.value_or(0);
    if ((!what || what->empty()) && used > usual + much) {
      what = fmt::format("{} of its memory is in use, the median of the job's GPUs is {}",
                         bytes_text(used), bytes_text(usual));
    }
    findings.add(one.place(), what ? Answer{.wrong = *what} : not_known);
  }
}

constexpr auto gpu_table = std::to_array<Rule>(
    {{"ecc", each_gpu<judge_ecc>, warning,
      "memory errors stay undetected; GPUs with GDDR memory have more bandwidth than with ECC on",
      "nvidia-smi -e 1, then reset the GPU", "no data-centre GPU runs without ECC"},
     {"ecc-errors", each_gpu<judge_uncorrected>, warning,
      "such errors kill programs, and results since then may be wrong",
      "reset the GPU; if the errors come again, take it out of service",
      "no uncorrected errors since the drivers were loaded"},
     {"row-remap", each_gpu<judge_remap>, warning, "this memory causes errors until it is repaired",
      "take the GPU out of service and return it",
      "no memory row waits to be remapped, and few pages are retired"},
     {"xid", all_gpus<judge_xid>, warning, "", "",
      "the kernels' logs have no Xids except those that programs cause", "",
      "let users read the kernel's log (kernel.dmesg_restrict=0)"},
     {"mig", each_gpu<[](const JobGpu& one) { return flag(one.gpu->mig, true, "MIG is on"); }>,
      warning, "each rank gets only a part of a GPU, without NVLink and peer access",
      "nvidia-smi -mig 0, or ask for nodes without MIG", "off on all GPUs"},
     {"compute-mode", each_gpu<judge_compute_mode>, warning,
      "without MPS only one rank can create a CUDA context", "nvidia-smi -c DEFAULT",
      "every rank may compute on its GPU"},
     {"throttle", all_gpus<judge_throttle>, warning,
      "the GPU is slower than similar GPUs from the start",
      "check its power supply and cooling: nvidia-smi -q -d PERFORMANCE",
      "no clocks are reduced now"},
     {"persistence", each_gpu<[](const JobGpu& one) {
        return flag(one.gpu->persistence, false, "persistence mode is off");
      }>,
      warning,
      "small: the driver unloads between programs, so start-up takes longer, and settings and "
      "error counts are lost",
      "run nvidia-persistenced", "on for all GPUs"},
     {"other-processes", all_gpus<judge_processes>, warning,
      "other processes slow down the job's kernels, and use memory and links",
      "end other processes, or ask for nodes that only your job uses (srun --exclusive)",
      "only ranks of the job use the GPUs"}});

}  // namespace

std::span<const Rule> gpu_rules() { return gpu_table; }

}  // namespace isoscale::preflight
