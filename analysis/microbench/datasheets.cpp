// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/microbench/datasheets.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace isoscale::analysis::microbench {
namespace {

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

}  // namespace isoscale::analysis::microbench
