// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"

/// What the rows of the option table need more than a line for. Values are written as TOML; ""
/// where there is nothing to write.
namespace isoscale::config {

/// Whether the model is one that its name stands for.
[[nodiscard]] bool is_preset(const workloads::Model& model);
[[nodiscard]] std::string write_options(const workloads::Options& options);

/// Both throw base::UsageError.
void apply_ranks(std::string_view text, RunConfig& run);
void apply_gpu_bind(std::string_view text, RunConfig& run);

[[nodiscard]] std::string write_ranks(const RunConfig& run);
[[nodiscard]] std::string write_gpu_bind(const RunConfig& run);
[[nodiscard]] std::string write_names(const std::vector<std::string>& names);
[[nodiscard]] std::string write_path(const std::filesystem::path& path);
/// An absent one is not written.
[[nodiscard]] std::string write_time(const std::optional<units::Seconds>& time);
/// Flags are written only when they are set.
[[nodiscard]] std::string write_flag(bool set);

}  // namespace isoscale::config
