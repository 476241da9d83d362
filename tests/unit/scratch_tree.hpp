// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>

#include "matchers.hpp"
#include "preflight/job_facts.hpp"
#include "tests/support/scratch_directory.hpp"

namespace isoscale::testing_support {

using Texts = std::map<std::string, std::string, std::less<>>;

/// Looks texts up by their names, in place of the environment's variables or the kernel's files.
inline auto known(Texts texts) {
  return [texts = std::move(texts)](std::string_view name) -> std::optional<std::string> {
    const auto found = texts.find(name);
    return found == texts.end() ? std::nullopt : std::optional{found->second};
  };
}

}  // namespace isoscale::testing_support

namespace isoscale::preflight {

/// Returns known facts of a node, one of its GPUs or one of its ports; absent ones are left out.
inline nlohmann::json json_of(CheckedNode node) {
  JobFacts job;
  job.nodes = {std::move(node)};
  return nlohmann::json::parse(to_json(job))["nodes"][0];
}
inline nlohmann::json json_of(GpuFacts gpu) {
  CheckedNode node;
  node.gpus = {std::move(gpu)};
  return json_of(std::move(node))["gpus"][0];
}
inline nlohmann::json json_of(CheckedPort port) {
  CheckedNode node;
  node.ports = {std::move(port)};
  return json_of(std::move(node))["ports"][0];
}

/// The PCI paths of two GPUs below one switch.
inline const std::string first_path =
    "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:1b:00.0";
inline const std::string second_path =
    "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:1c:00.0";

/// Files like the kernel's.
class ScratchTree {
 public:
  [[nodiscard]] const std::filesystem::path& root() const { return directory_.path(); }
  [[nodiscard]] std::filesystem::path at(const std::string& path) const { return root() / path; }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(at(path).parent_path());
    std::ofstream{at(path), std::ios::binary} << text;
  }
  /// Files of one line each.
  void lines(const std::string& folder, const testing_support::Texts& line_of_file) const {
    for (const auto& [name, line] : line_of_file) write(folder + "/" + name, line + "\n");
  }
  void folder(const std::string& path) const { std::filesystem::create_directories(at(path)); }
  void link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories(at(path).parent_path());
    std::filesystem::create_symlink(at(target), at(path));
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(at(path)); }

  /// A PCI function in the folder "sys/devices/" + path, found under its bus id as well.
  void pci_function(const std::string& path, const std::string& vendor,
                    const std::string& kind) const {
    const std::string folder = "sys/devices/" + path;
    lines(folder, {{"vendor", vendor}, {"class", kind}});
    link("sys/bus/pci/devices/" + at(path).filename().string(), folder);
  }

 private:
  testing_support::ScratchDirectory directory_;
};

}  // namespace isoscale::preflight
