// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/microbench/microbench_report.hpp"

#include <algorithm>
#include <array>

#include "calibration/fit_calibration.hpp"
#include "program/op.hpp"
#include "simulate/op_time.hpp"

namespace isoscale::analysis::microbench {
namespace {

using results::RowData;

constexpr double tera = 1e12, giga = 1e9;

/// Returns a datasheet from its rates: dense TFLOP/s of 16-bit and of 8-bit types, TB/s of memory,
/// and GB/s of NVLink per direction. A rate of 0 means that it is not known.
constexpr Datasheet sheet(std::string_view gpu, double peak_16bit, double peak_8bit, double memory,
                          double link) {
  const auto known = [](double value, double unit) {
    return value > 0 ? std::optional{value * unit} : std::nullopt;
  };
  return {.gpu = gpu,
          .peak_16bit = known(peak_16bit, tera),
          .peak_8bit = known(peak_8bit, tera),
          .memory = known(memory, tera),
          .link = known(link, giga)};
}

/// The datasheet rates, from github.com/stas00/ml-engineering at commit 744d01e, folders
/// compute/accelerator and network: dense bf16 (f16 is as fast on these), fp8, memory, and NVLink
/// per direction. The first entry whose name is part of the GPU's name applies, so longer names
/// come first. An entry without rates is for a model that another entry would match by mistake.
constexpr std::array<Datasheet, 13> all_datasheets{{
    sheet("GB200", 2500, 5000, 8.0, 900),
    {.gpu = "GB300"},
    sheet("B200", 2250, 4500, 8.0, 900),
    sheet("B300", 2250, 4500, 8.0, 900),
    // The bandwidth of the GH200 (4.0 or 4.8 TB/s) depends on its variant, which its name lacks.
    sheet("GH200", 989, 1979, 0, 450),
    {.gpu = "H200 NVL"},
    sheet("H200", 989, 1979, 4.8, 450),
    {.gpu = "H100 NVL"},
    sheet("H100 PCIe", 756, 0, 0, 0),
    sheet("H100 80GB HBM3", 989.4, 1979, 3.35, 450),
    sheet("H100 SXM", 989.4, 1979, 3.35, 450),
    sheet("A100-SXM4-80GB", 312, 0, 2.0, 300),
    sheet("A100", 312, 0, 0, 0),
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

const Datasheet* datasheet_of(std::string_view gpu_name) {
  const auto found = std::ranges::find_if(
      all_datasheets, [&](const Datasheet& at) { return gpu_name.find(at.gpu) != gpu_name.npos; });
  return found == all_datasheets.end() ? nullptr : &*found;
}

const Datasheet* datasheet_of(const results::RankFacts& facts) {
  const std::string name = text_of(facts, "gpu_name");
  return name.empty() || text_of(facts, "gpu_mig") == "on" ? nullptr : datasheet_of(name);
}

std::optional<double> bus_factor(std::string_view op, double members) {
  if (!(members >= 1) || op == "barrier" || !calibration::is_collective(op)) return std::nullopt;
  const auto kind = program::op_kind_of(op).value_or(program::OpKind::exchange);  // for "sendrecv"
  return simulate::wire_factor(kind, members);
}

bool has_rates(const RowData& row) {
  return row.status != results::PointStatus::skipped && !row.times.empty();
}

bool is_within_device(const RowData& row) {
  const std::string kind = text_of(row, "kind");
  return text_of(row, "op") == "memory" && (kind == "d2d" || kind == "copy" || kind == "triad");
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
    if (reference.datasheet != nullptr && is_within_device(row)) {
      report.of_peak = share(report.bandwidth, reference.datasheet->memory);
    }
  }
  return report;
}

}  // namespace isoscale::analysis::microbench
