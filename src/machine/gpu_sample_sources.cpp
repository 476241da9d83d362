// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "machine/device_sampler.hpp"
#include "machine/nvml.hpp"

namespace isoscale::machine {
namespace {

using nvml::ask;
using nvml::Device;
using nvml::Functions;

/// A question to NVML; nullopt where it has no answer.
using Question = std::optional<double> (*)(const Functions&, Device);

std::optional<double> scaled(std::optional<unsigned> value, double scale) {
  return value ? std::optional{*value * scale} : std::nullopt;
}
std::optional<double> scaled(std::optional<unsigned long long> value, double scale) {
  return value ? std::optional{static_cast<double>(*value) * scale} : std::nullopt;
}

std::optional<double> clock_of(const Functions& nvml, Device device, int clock) {
  constexpr double megahertz = 1e6;
  return scaled(ask<unsigned>(nvml.clock_info, device, clock), megahertz);
}
std::optional<double> temperature_of(const Functions& nvml, Device device) {
  constexpr double freezing = 273.15;
  const auto celsius = ask<unsigned>(nvml.temperature, device, nvml::gpu_temperature);
  return celsius ? std::optional{*celsius + freezing} : std::nullopt;
}
std::optional<double> utilisation_of(const Functions& nvml, Device device) {
  constexpr double percent = 0.01;
  const auto rates = ask<nvml::Utilisation>(nvml.utilisation, device);
  return rates ? std::optional{rates->gpu * percent} : std::nullopt;
}
std::optional<double> errors_of(const Functions& nvml, Device device, int error) {
  return scaled(ask<unsigned long long>(nvml.ecc_errors, device, error, nvml::aggregate_count), 1);
}
std::optional<double> nvlink_of(const Functions& nvml, Device device, unsigned field) {
  constexpr double kibi = 1024;
  nvml::FieldValue asked{};
  asked.field = field;
  asked.scope = nvml::all_links;
  if (nvml.field_values == nullptr || nvml.field_values(device, 1, &asked) != nvml::success ||
      asked.answer != nvml::success || asked.type != nvml::unsigned_long_long) {
    return std::nullopt;
  }
  return static_cast<double>(asked.value) * kibi;
}

struct Quantity {
  const char* name;
  const char* unit;
  Question question;
};

constexpr std::array<Quantity, 11> quantities{{
    {"sm_clock", "Hz",
     [](const Functions& nvml, Device gpu) { return clock_of(nvml, gpu, nvml::sm_clock); }},
    {"memory_clock", "Hz",
     [](const Functions& nvml, Device gpu) { return clock_of(nvml, gpu, nvml::memory_clock); }},
    {"power", "W",
     [](const Functions& nvml, Device gpu) {
       return scaled(ask<unsigned>(nvml.power_usage, gpu), 1e-3);
     }},
    {"energy", "J",
     [](const Functions& nvml, Device gpu) {
       return scaled(ask<unsigned long long>(nvml.total_energy, gpu), 1e-3);
     }},
    {"temperature", "K", temperature_of},
    {"utilisation", "1", utilisation_of},
    {"throttle_reasons", "1",
     [](const Functions& nvml, Device gpu) {
       return scaled(ask<unsigned long long>(nvml.clock_reasons, gpu), 1);
     }},
    {"ecc_corrected", "1",
     [](const Functions& nvml, Device gpu) { return errors_of(nvml, gpu, nvml::corrected); }},
    {"ecc_uncorrected", "1",
     [](const Functions& nvml, Device gpu) { return errors_of(nvml, gpu, nvml::uncorrected); }},
    {"nvlink_sent_bytes", "B",
     [](const Functions& nvml, Device gpu) { return nvlink_of(nvml, gpu, nvml::nvlink_sent); }},
    {"nvlink_received_bytes", "B",
     [](const Functions& nvml, Device gpu) { return nvlink_of(nvml, gpu, nvml::nvlink_received); }},
}};

}  // namespace

std::vector<Source> gpu_sources(const NvmlLibrary& library, std::string_view uuid,
                                std::span<const std::string_view> wanted) {
  const Functions* const functions = library.functions();
  const std::optional<Device> gpu =
      functions == nullptr ? std::nullopt : nvml::find_device(*functions, uuid);
  if (!gpu) return {};
  const auto index = ask<unsigned>(functions->index, *gpu);
  const std::string name = index ? fmt::format("gpu {}", *index) : "gpu";
  Source source;
  std::vector<Question> questions;
  for (const Quantity& quantity : quantities) {
    if (!wanted.empty() && std::ranges::find(wanted, quantity.name) == wanted.end()) continue;
    if (!quantity.question(*functions, *gpu)) continue;
    source.channels.push_back({.device = name, .quantity = quantity.name, .unit = quantity.unit});
    questions.push_back(quantity.question);
  }
  if (questions.empty()) return {};
  source.read = [functions, gpu = *gpu, questions = std::move(questions)](auto values) {
    for (std::size_t i = 0; i < questions.size(); ++i) {
      values[i] = questions[i](*functions, gpu).value_or(std::numeric_limits<double>::quiet_NaN());
    }
  };
  return {std::move(source)};
}

}  // namespace isoscale::machine
