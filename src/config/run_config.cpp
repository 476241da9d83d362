// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/run_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <vector>

namespace isoscale::config {

std::string_view name(Device device) {
  constexpr std::array<std::string_view, 3> names{"auto", "cuda", "host"};
  return names[static_cast<std::size_t>(device)];
}

std::string_view name(FillIdle fill) { return fill == FillIdle::idle ? "idle" : "replicas"; }

std::string_view name(HostStreams streams) {
  constexpr std::array<std::string_view, 3> names{"auto", "threads", "folded"};
  return names[static_cast<std::size_t>(streams)];
}

std::string_view name(CheckCommand::Format format) {
  return format == CheckCommand::Format::text ? "text" : "json";
}

std::string gpu_options_given(const RunConfig& config) {
  std::vector<std::string_view> given;
  if (config.share_gpu == ShareGpu::yes) given.emplace_back("--share-gpu");
  if (config.gpu_bind != automatic_gpu_bind) given.emplace_back("--gpu-bind");
  if (config.graph == Graph::on) given.emplace_back("--graph");
  if (config.nvtx == Nvtx::on) given.emplace_back("--nvtx");
  if (!config.gemm_algorithms.empty()) given.emplace_back("--gemm-algorithms");
  return fmt::format("{}", fmt::join(given, ", "));
}

}  // namespace isoscale::config
