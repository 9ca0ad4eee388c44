# make deb: Debian packages out of the components of MixtapeInstall.cmake, and one for each MPI plug-in.
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL runtime development tools ${MIXTAPE_MPI_FLAVORS})
if(TARGET mixtape_fortran)
  list(APPEND CPACK_COMPONENTS_ALL fortran)
endif()
set(CPACK_PACKAGE_VENDOR "The Mixtape authors")
set(CPACK_PACKAGE_CONTACT "The Mixtape authors <mixtape@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(library libmixtape${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${library})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
# What is loaded when first needed: for pictures and for downloads.
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "libcairo2, libcurl4")
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "mixed precision neural network training in C: the library
 Mixtape trains neural networks in mixed precision with the semantics of Keras.")

# What the static library needs: the -dev packages of its own libraries, and of those of libzip.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libmixtape-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
string(JOIN ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
       "${library} (= ${PROJECT_VERSION})" libjansson-dev libzip-dev zlib1g-dev libbz2-dev libssl-dev
       libpng-dev libjpeg-dev)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "mixed precision neural network training in C: development
 Headers for C and C++, the static library, the manual and the examples of Mixtape.")

# Files of modules are those of one version of their format.
set(CPACK_DEBIAN_FORTRAN_PACKAGE_NAME libmixtape-fortran-dev)
set(CPACK_DEBIAN_FORTRAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_FORTRAN_PACKAGE_DEPENDS "libmixtape-dev (= ${PROJECT_VERSION}), gfortran")
set(CPACK_COMPONENT_FORTRAN_DESCRIPTION "mixed precision neural network training in C: Fortran
 The Fortran modules of Mixtape, made by ${CMAKE_Fortran_COMPILER_ID} ${CMAKE_Fortran_COMPILER_VERSION}.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME mixtape-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS graphviz)
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS ${CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS})
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "mixed precision neural network training in C: the program
 The program mixtape trains, evaluates, converts and explains models in mixed precision.")

# A plug-in serves the program as well as the library, of the same version; its flavour's mpirun starts both.
set(launcher_openmpi openmpi-bin)
set(launcher_mpich mpich)
foreach(flavor ${MIXTAPE_MPI_FLAVORS})
  string(TOUPPER ${flavor} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME mixtape-${flavor})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS
      "mixtape-tools (= ${PROJECT_VERSION}) | ${library} (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS ${launcher_${flavor}})
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "mixed precision neural network training in C: ${flavor}
 The plug-in by which Mixtape trains in several processes on ${flavor}.")
endforeach()

# Each package has the licence under its own name; `make install` does not need these copies.
foreach(lower ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${lower} component)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright COMPONENT ${lower} EXCLUDE_FROM_ALL
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${component}_PACKAGE_NAME})
endforeach()
# cpack packs what is built, and builds nothing more.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
include(CPack)
