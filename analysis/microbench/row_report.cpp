// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/microbench/row_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "calibration/calibration.hpp"

namespace isoscale::analysis::microbench {
namespace {

using results::RowData;

constexpr std::string_view open_book =
    "github.com/stas00/ml-engineering at 744d01e, compute/accelerator and network (bf16 dense, "
    "fp8, "
    "memory, NVLink per direction; f16 runs at the rate of bf16 on these)";
constexpr double tera = 1e12, giga = 1e9;

/// The table of datasheets. The first match applies, so longer names precede names that they
/// contain. An entry without rates is for a model that another entry would match by mistake.
constexpr std::array<Datasheet, 13> all_datasheets{{
    {.gpu = "GB200",
     .peak_16bit = 2500 * tera,
     .peak_8bit = 5000 * tera,
     .memory = 8.0 * tera,
     .link = 900 * giga,
     .source = open_book},
    {.gpu = "GB300"},
    {.gpu = "B200",
     .peak_16bit = 2250 * tera,
     .peak_8bit = 4500 * tera,
     .memory = 8.0 * tera,
     .link = 900 * giga,
     .source = open_book},
    {.gpu = "B300",
     .peak_16bit = 2250 * tera,
     .peak_8bit = 4500 * tera,
     .memory = 8.0 * tera,
     .link = 900 * giga,
     .source = open_book},
    // The memory bandwidth of the GH200 depends on its variant (4.0 or 4.8 TB/s), which is not part
    // of the name.
    {.gpu = "GH200",
     .peak_16bit = 989 * tera,
     .peak_8bit = 1979 * tera,
     .link = 450 * giga,
     .source = open_book},
    {.gpu = "H200 NVL"},
    {.gpu = "H200",
     .peak_16bit = 989 * tera,
     .peak_8bit = 1979 * tera,
     .memory = 4.8 * tera,
     .link = 450 * giga,
     .source = open_book},
    {.gpu = "H100 NVL"},
    {.gpu = "H100 PCIe", .peak_16bit = 756 * tera, .source = open_book},
    {.gpu = "H100 80GB HBM3",
     .peak_16bit = 989.4 * tera,
     .peak_8bit = 1979 * tera,
     .memory = 3.35 * tera,
     .link = 450 * giga,
     .source = open_book},
    {.gpu = "H100 SXM",
     .peak_16bit = 989.4 * tera,
     .peak_8bit = 1979 * tera,
     .memory = 3.35 * tera,
     .link = 450 * giga,
     .source = open_book},
    {.gpu = "A100-SXM4-80GB",
     .peak_16bit = 312 * tera,
     .memory = 2.0 * tera,
     .link = 300 * giga,
     .source = open_book},
    {.gpu = "A100", .peak_16bit = 312 * tera, .source = open_book},
}};

/// Returns amount / time if both are present and above 0.
std::optional<double> rate(std::optional<double> amount,
                           const std::optional<statistics::Estimate>& time) {
  if (!amount || !(*amount > 0) || !time || !(time->median > 0)) return std::nullopt;
  return *amount / time->median;
}

std::optional<double> share(std::optional<double> value, std::optional<double> whole) {
  if (!value || !whole || !(*whole > 0)) return std::nullopt;
  return *value / *whole;
}

/// True if a memory row both reads and writes the device's own memory.
bool within_device(const std::string& kind) {
  return kind == "d2d" || kind == "copy" || kind == "triad";
}

void add_gemm(RowReport& report, const RowReference& reference) {
  const std::string dtype = text_of(*report.data, "dtype");
  report.flops = rate(number_of(*report.data, "flop"), report.time);
  if (reference.calibration != nullptr) {
    const auto* const ceiling = calibration::ceiling_of(*reference.calibration, dtype);
    if (ceiling != nullptr) report.of_ceiling = share(report.flops, ceiling->rate);
  }
  if (reference.datasheet != nullptr) {
    report.of_peak = share(report.flops, reference.datasheet->peak(dtype));
  }
}

}  // namespace

std::optional<double> Datasheet::peak(std::string_view dtype) const {
  if (dtype == "f16" || dtype == "bf16") return peak_16bit;
  if (dtype == "fp8" || dtype == "e4m3" || dtype == "e5m2") return peak_8bit;
  return std::nullopt;
}

std::span<const Datasheet> datasheets() { return all_datasheets; }

const Datasheet* datasheet_of(std::string_view gpu_name) {
  const auto found = std::ranges::find_if(
      all_datasheets, [&](const Datasheet& at) { return gpu_name.find(at.gpu) != gpu_name.npos; });
  return found == all_datasheets.end() ? nullptr : &*found;
}

const Datasheet* datasheet_of(const results::RankFacts& facts) {
  const auto name = facts.text.find("gpu_name");
  const auto parts = facts.text.find("gpu_mig");
  if (name == facts.text.end() || (parts != facts.text.end() && parts->second == "on")) {
    return nullptr;
  }
  return datasheet_of(name->second);
}

std::optional<double> bus_factor(std::string_view op, double members) {
  if (!(members >= 1) || op == "barrier" || !calibration::is_collective(op)) return std::nullopt;
  if (op == "all_reduce") return 2 * (members - 1) / members;
  if (op == "broadcast" || op == "reduce" || op == "sendrecv") return 1;
  return (members - 1) / members;
}

bool has_rates(const RowData& row) {
  return row.status != results::PointStatus::skipped && !row.times.empty();
}

RowReport report_row(const RowData& row, const RowReference& reference) {
  RowReport report;
  report.data = &row;
  report.time = statistics::estimate(calibration::call_times(row));
  constexpr double p99 = 0.99;
  report.p99 = statistics::quantile(row.call_times, p99);
  if (!has_rates(row)) return report;
  const std::string op = text_of(row, "op");
  const std::optional<double> bytes = number_of(row, "bytes");
  if (op == "gemm") {
    add_gemm(report, reference);
  } else if (calibration::is_collective(op) && op != "barrier") {
    report.algbw = rate(bytes, report.time);
    const double members = number_of(row, "members").value_or(0);
    const auto factor = members > 1 ? bus_factor(op, members) : std::nullopt;
    if (report.algbw && factor) report.busbw = *report.algbw * *factor;
  } else if (op == "p2p" || op == "memory") {
    report.bandwidth = rate(bytes, report.time);
    if (op == "memory" && reference.datasheet != nullptr && within_device(text_of(row, "kind"))) {
      report.of_memory_peak = share(report.bandwidth, reference.datasheet->memory);
    }
  }
  return report;
}

}  // namespace isoscale::analysis::microbench
