// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace isoscale::system {

/// The kernel's messages since it started, as far as it or the system's log still has them: of
/// dev/kmsg, else of var/log/kern.log. Never waits, and reads no more than 16 MiB. nullopt where
/// neither may be read, or holds nothing of this boot.
[[nodiscard]] std::optional<std::string> kernel_log(const std::filesystem::path& root);

/// Codes of the driver's error reports by PCI bus id ("0000:1b:00.0"), each once, in order of first
/// appearance: "NVRM: Xid (PCI:0000:1b:00): 79, ..." (NVIDIA, XID Errors).
[[nodiscard]] std::map<std::string, std::vector<int>> xids_in(std::string_view log);

}  // namespace isoscale::system
