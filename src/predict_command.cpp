// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "commands_and_output.hpp"

#include <vector>

#include "analysis/page/page.hpp"
#include "analysis/predict/forecast.hpp"
#include "analysis/predict/predict_collectives.hpp"
#include "analysis/predict/prediction.hpp"
#include "analysis/predict/question.hpp"
#include "analysis/predict/run_machine.hpp"
#include "analysis/predict/system_file.hpp"
#include "base/warn.hpp"
#include "results/reader/reader.hpp"

namespace isoscale {
namespace {

/// True if a source is a data sheet: the name of a built-in one, or a file that ends in .toml. A
/// plain name without folder and extension is also taken as a data sheet if there is no such file;
/// the error message for an unknown data sheet then lists the known names.
bool is_sheet(const std::filesystem::path& source) {
  if (source.extension() == ".toml" || analysis::predict::is_system(source.string())) return true;
  return !source.has_extension() && !source.has_parent_path() && !std::filesystem::exists(source);
}

/// If --network names a data sheet or a run (`source`), uses its network for `question`.
void replace_network(const std::string& source, analysis::predict::Question& question) {
  if (source.empty()) return;
  if (is_sheet(source)) {
    return analysis::predict::use_network(analysis::predict::load_system(source), source, question);
  }
  const simulate::Machine machine = analysis::predict::run_machine(results::read_run(source));
  analysis::predict::use_network(machine, source, question);
}

analysis::predict::Prediction predicted(const settings::PredictCommand& command) {
  if (is_sheet(command.source)) {
    if (!command.launches.empty()) {
      throw base::UsageError("predict takes one data sheet; a comma joins launches of a run");
    }
    simulate::Machine sheet = analysis::predict::load_system(command.source.string());
    if (!command.software.empty()) {
      sheet.software = analysis::predict::load_software(command.software);
    }
    if (command.no_noise) sheet.noise = {};
    analysis::predict::Question question = analysis::predict::question_of(command, sheet);
    replace_network(command.network, question);
    return analysis::predict::predict(question);
  }
  if (!command.software.empty() || command.no_noise) {
    throw base::UsageError(
        "--software and --no-noise are for a data sheet; a run measured its own software and "
        "noise");
  }
  std::vector<results::RunData> launches{results::read_run(command.source)};
  for (const auto& file : command.launches) launches.push_back(results::read_run(file));
  analysis::predict::Question question = analysis::predict::question_of(command, launches);
  replace_network(command.network, question);
  return analysis::predict::predict(question);
}

template <class Predicted>
std::string render(const Predicted& prediction, settings::Format format) {
  using enum settings::Format;
  if (format == json) return analysis::predict::render_json(prediction);
  if (format == csv) return analysis::predict::render_csv(prediction);
  return analysis::predict::render_text(prediction);
}

}  // namespace

base::ExitCode execute(const settings::PredictCommand& command) {
  if (command.workload == "collectives" && is_sheet(command.source)) {
    return print(render(analysis::predict::collective_times(
                            command, analysis::predict::load_system(command.source.string())),
                        command.format));
  }
  if (!command.html.empty()) analysis::page::require_page();
  const analysis::predict::Prediction prediction = predicted(command);
  // The text report contains the warnings. With the other formats, which programs read, they are
  // printed on standard error.
  if (command.format != settings::Format::text) {
    for (const std::string& warning : prediction.warnings) base::warn("isoscale: " + warning);
  }
  analysis::page::write_page(prediction, command.html, command.if_exists);
  return print(render(prediction, command.format));
}

base::ExitCode execute(const config::ListCommand& command) {
  const bool is_of_system = command.of == "system";
  if (command.what != "keys" || (!is_of_system && command.of != "software")) {
    return print(config::listing(command));
  }
  std::string text;
  for (const analysis::predict::SheetKey& key :
       is_of_system ? analysis::predict::system_keys() : analysis::predict::software_keys()) {
    text += config::key_text(key.key, key.needed ? "needed" : "", key.meaning);
  }
  return print(text);
}

}  // namespace isoscale
