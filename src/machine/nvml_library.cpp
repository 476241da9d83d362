// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "machine/nvml_library.hpp"

#include <fmt/format.h>

#include <utility>

namespace isoscale::machine {

NvmlLibrary NvmlLibrary::open() {
  return NvmlLibrary{SharedObject{dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)}};
}

NvmlLibrary::NvmlLibrary(SharedObject object) : object_(std::move(object)) {
  if (!object_) return;
  functions_ =
      nvml::Functions{.find = {[this](const char* name) { return dlsym(object_.get(), name); }}};
  initialise();
}

NvmlLibrary::NvmlLibrary(const FindSymbol& find) : functions_{.find = {find}} { initialise(); }

NvmlLibrary::~NvmlLibrary() {
  if (initialised_ && functions_.shutdown != nullptr) functions_.shutdown();
}

void NvmlLibrary::initialise() {
  initialised_ = functions_.init != nullptr && functions_.init() == nvml::success;
}

/// Tries both forms of the UUID, since that of a MIG instance may begin with "GPU-" in CUDA and
/// with "MIG-" in NVML.
std::optional<nvml::Device> nvml::find_device(const Functions& nvml, std::string_view uuid) {
  constexpr std::string_view whole = "GPU-", instance = "MIG-";
  if (const auto device = ask<Device>(nvml.handle_by_uuid, std::string{uuid}.c_str())) {
    return device;
  }
  if (!uuid.starts_with(whole)) return std::nullopt;
  const std::string other = fmt::format("{}{}", instance, uuid.substr(whole.size()));
  return ask<Device>(nvml.handle_by_uuid, other.c_str());
}

}  // namespace isoscale::machine
