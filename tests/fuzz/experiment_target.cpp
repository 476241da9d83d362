// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
//
// Experiment files: read, and made the configuration of a run.
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "settings/settings_layer.hpp"
#include "tests/fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT
  using namespace isoscale;  // NOLINT: the function stands outside for its name's sake
  constexpr std::size_t longest = 1 << 16;
  if (size > longest) return 0;
  const std::string_view text{reinterpret_cast<const char*>(data), size};  // NOLINT
  try {
    const settings::Layer layer = settings::read_layer(text, "fuzz.toml");
    (void)settings::assemble(layer, {});
  } catch (const base::UsageError& error) {
    std::string_view said = error.what();
    for (std::size_t end = 0; !said.empty(); said.remove_prefix(end)) {
      end = said.find('\n');
      fuzz::must(base::is_plain(said.substr(0, end)), "an error shows nothing but plain text");
      end = end == std::string_view::npos ? said.size() : end + 1;
    }
  }
  return 0;
}
