// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ranges>
#include <set>

#include "config/app.hpp"
#include "mesh/mesh.hpp"
#include "workloads/api/toml_files.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::config {
namespace {

// The beginning of a function for bash and zsh that searches the table of completion_script(). The
// table follows it, and then the end of the function.
constexpr std::string_view search = R"(_isoscale_search() {
  # Sets 'found' to options or commands, each as word:help, and 'values' to other words and files;
  # $1 is the command, $2 the word before, $3 the place of this word after the command.
  local command word choices help
  while IFS='|' read -r command word choices help; do
    [[ $command == "$1" ]] || continue
    if [[ $word == [0-9] ]]; then
      [[ $word -le $3 ]] && values=$choices
    elif [[ $word == "$2" && $choices != - ]]; then
      found=() values=$choices
      return
    else
      found+=("$word:$help")
    fi
  done <<'TABLE'
)";

constexpr std::string_view bash_function = R"(TABLE
}
_isoscale() {
  local IFS=$' \t\n' current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} values='' before=''
  local at=$((COMP_CWORD - 1)) found=() choices word
  COMPREPLY=()
  # bash takes --option=value apart into three words.
  [[ $current == = ]] && current='' at=$COMP_CWORD
  if [[ ${COMP_WORDS[at]} == = ]]; then
    at=$((at - 1))
    [[ ${COMP_WORDS[at]} == --* ]] || return 0
  fi
  [[ $COMP_CWORD -eq 1 ]] && command=''
  _isoscale_search "$command" "${COMP_WORDS[at]}" $((COMP_CWORD - 1))
  [[ $values == ,* && $current == *,* ]] && before=${current%,*},
  current=${current#"$before"}
  read -ra choices <<<"${values#,}"  # an array: patterns must not become file names here
  for word in "${found[@]%%:*}" "${choices[@]}"; do
    if [[ $word == '*'* ]]; then
      compopt -o filenames 2>/dev/null  # says no where no line is being edited
      mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(
        compgen -P "$before" -f -X "!$word" -- "$current"; compgen -P "$before" -d -- "$current")
    elif [[ $word == "$current"* ]]; then
      COMPREPLY+=("$before$word")
    fi
  done
  [[ ${COMPREPLY[*]} == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -F _isoscale isoscale
)";

constexpr std::string_view zsh_function = R"(TABLE
}
_isoscale() {
  local command=$words[2] before=$words[CURRENT-1] values=''
  local -a found choices patterns
  (( CURRENT == 2 )) && command=''
  [[ $PREFIX == --*=* ]] && before=${PREFIX%%=*} && compset -P '*='
  _isoscale_search "$command" "$before" $((CURRENT - 2))
  (( $#found )) && _describe option found
  [[ $values == ,* ]] && compset -P '*,'
  choices=(${(s: :)values#,}) patterns=(${(M)choices:#\**})
  compadd -S '' -- ${(M)choices:#*=}
  compadd -- ${choices:#(*=|\**)}
  (( $#patterns )) && _files -g "$patterns"
  (( compstate[nmatches] ))
}
if [[ $funcstack[1] == _isoscale ]]; then _isoscale "$@"; else compdef _isoscale isoscale; fi
)";

bool is_word(std::string_view text) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return !text.empty() && text.find_first_not_of(letters) == std::string_view::npos;
}

/// Returns the values that the program knows for the option or argument called `what`.
std::vector<std::string> names_for(std::string_view what) {
  if (what == "--model") return workloads::model_names();
  std::vector<std::string> names;
  if (what == "--workload" || what == workload_argument) {
    for (const auto& workload : workloads::registry()) names.emplace_back(workload.name);
  } else if (what == "--suite") {
    for (const std::string_view suite : settings::suite_names()) names.emplace_back(suite);
  } else if (what == "--mesh") {
    for (const mesh::Axis axis : mesh::all_axes) names.push_back(fmt::format("{}=", name(axis)));
  } else if (what == "--software") {
    for (const auto& profile : workloads::software_presets()) names.emplace_back(profile.name);
  } else if (what == source_argument || what == "--network") {
    for (const auto& system : workloads::system_presets()) names.emplace_back(system.name);
  } else if (what == "--set") {
    std::set<std::string> keys;
    for (const auto& workload : workloads::registry()) {
      for (const auto& option : workload.options) keys.insert(fmt::format("{}=", option.key));
    }
    names.assign(keys.begin(), keys.end());
  }
  return names;
}

/// Returns `names`, followed by the words and file patterns that a placeholder in --help stands
/// for ("*.toml" for "FILE.toml"), with blanks between them. A comma comes first if the placeholder
/// allows several values, as "N[,N...]" does.
std::string values_of_placeholder(std::string_view placeholder, std::vector<std::string> names) {
  for (const auto& part : std::views::split(placeholder, '|')) {
    const std::string_view whole{part.begin(), part.end()};
    const std::string_view alternative = whole.substr(0, whole.find("[,"));
    const std::size_t dot = alternative.rfind('.');
    if (is_word(alternative)) {
      names.emplace_back(alternative);
    } else if (alternative == "FILE" || alternative == "DIR") {
      names.emplace_back("*");
    } else if (dot != std::string_view::npos && is_word(alternative.substr(dot + 1))) {
      names.push_back(fmt::format("*{}", alternative.substr(dot)));
    }
  }
  return fmt::format("{}{}", placeholder.find("[,") == std::string_view::npos ? "" : ",",
                     fmt::join(names, " "));
}

/// Returns the rows of the table (see completion_script()) for a command's options and arguments.
std::string rows_of(const CLI::App& command, std::string_view command_name) {
  std::string rows;
  int place = 0;
  for (const CLI::Option* const option : command.get_options()) {
    std::string text = option->get_option_text(), help = option->get_description();
    const auto add = [&](std::string_view word, std::string_view values) {
      rows += fmt::format("{}|{}|{}|{}\n", command_name, word, values, help);
    };
    if (option->get_positional()) {
      // The possible values of an argument are in its name, its text and its description.
      const std::string argument = option->get_name(true);
      text = fmt::format("{}|{}|{}", argument, text, help);
      add(std::to_string(++place), values_of_placeholder(text, names_for(argument)));
    }
    for (const std::string& long_name : option->get_lnames()) {
      const std::string flag = "--" + long_name;
      const std::string values = values_of_placeholder(text, names_for(flag));
      add(flag, option->get_items_expected_max() == 0 ? "-" : values);
    }
  }
  return rows;
}

}  // namespace

std::string completion_script(std::string_view shell, const CLI::App& app) {
  std::string first = rows_of(app, ""), others;
  for (const CLI::App* const command : app.get_subcommands({})) {
    first += fmt::format("|{}|-|{}\n", command->get_name(), command->get_description());
    others += rows_of(*command, command->get_name());
  }
  return fmt::format("{}# {} completion of isoscale, made by 'isoscale completion {}'\n{}{}{}{}",
                     shell == "zsh" ? "#compdef isoscale\n" : "", shell, shell, search, first,
                     others, shell == "bash" ? bash_function : zsh_function);
}

}  // namespace isoscale::config
