# SPDX-FileCopyrightText: The Isoscale authors
# SPDX-License-Identifier: MIT

# Makes the page while Isoscale is built, so that its packages can be fetched while sources compile:
# npm fetches the packages of WEB/package-lock.json into BUILD, node bundles BUILD/page.html, and
# OUTPUT embeds it. Without npm or a network, OUTPUT is a copy of ABSENT, which has no page, and
# BUILD/missing says why; REQUIRED makes that an error. Without OUTPUT it only fetches.
#
# cmake -DWEB=web -DBUILD=folder [-DOUTPUT=asset.cpp -DABSENT=page_asset_absent.cpp -DREQUIRED=ON|OFF]
#       -P make_page.cmake

# Sets `missing` to the reason why the packages are not there; empty if they are.
macro(fetch_packages)
  file(SHA256 ${WEB}/package-lock.json wanted)
  set(stamp ${BUILD}/fetched)
  set(fetched "")
  set(missing "")
  if(EXISTS ${stamp})
    file(READ ${stamp} fetched)
  endif()
  find_program(npm npm NO_CACHE)
  find_program(node NAMES node nodejs NO_CACHE)
  if(NOT npm OR NOT node)
    set(missing "there is no npm")
  elseif(NOT fetched STREQUAL wanted)
    file(COPY ${WEB}/package.json ${WEB}/package-lock.json ${WEB}/.npmrc DESTINATION ${BUILD})
    execute_process(COMMAND ${npm} ci --ignore-scripts WORKING_DIRECTORY ${BUILD}
      RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said TIMEOUT 180)
    if(failed)
      file(WRITE ${BUILD}/npm.log "${said}")
      set(missing "npm could not fetch its packages: see ${BUILD}/npm.log")
    else()
      file(WRITE ${stamp} "${wanted}")
    endif()
  endif()
endmacro()

fetch_packages()
if(NOT OUTPUT)
  return()
endif()
if(missing AND REQUIRED)
  message(FATAL_ERROR "ISOSCALE_PAGE=ON, but ${missing}")
elseif(missing)
  message("Page of report --html: not built (${missing})")
  file(WRITE ${BUILD}/missing "${missing}\n")
  file(READ ${ABSENT} absent)
  file(WRITE ${OUTPUT} "${absent}")
  return()
endif()
file(REMOVE ${BUILD}/missing)
set(PAGE ${BUILD}/page.html)
execute_process(COMMAND ${node} ${WEB}/bundle.mjs ${BUILD} ${PAGE} COMMAND_ERROR_IS_FATAL ANY)
include(${CMAKE_CURRENT_LIST_DIR}/embed.cmake)
